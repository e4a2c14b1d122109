package edgeservice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"linkstream/edge/limit"
	"linkstream/edge/spool"
	"linkstream/schema/stream"
)

// Drain ships the clicks in the spool of an edge that is gone, and prints their number to out. It ends the leases of
// that edge; if there are none, it does not need the link store. It repeats failed steps until ctx is done. The error
// names what is left in the directory, or lost: clicks that are still pending, files of clicks that cannot be shipped,
// and segments that could not be read to their end. filelock.ErrHeld if the spool is in use.
func Drain(
	ctx context.Context, cfg spool.Config, topic spool.Topic, links limit.Store, out io.Writer, log *slog.Logger,
) error {
	left, err := spool.OpenLeft(cfg, log)
	if err != nil {
		return err
	}
	shipper := spool.NewShipper(left, topic, log)
	shipper.Run(ctx)
	leases := endLeases(ctx, links, left, log)
	keys := os.Remove(filepath.Join(cfg.Dir, KeysName)) // nothing else would delete them in time
	if errors.Is(keys, fs.ErrNotExist) {
		keys = nil
	}
	pending := left.Pending()
	if err := left.Close(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%d clicks shipped\n", shipper.Shipped()); err != nil {
		return err
	}
	unshippable, err := spool.UnshippableFiles(cfg.Dir)
	errs := []error{err, leases, keys}
	if pending > 0 {
		errs = append(errs, fmt.Errorf("%d clicks are not shipped and stay in %q", pending, cfg.Dir))
	}
	if n := left.Damaged(); n > 0 {
		errs = append(errs, fmt.Errorf("%d segments are damaged: clicks in them are lost, see the log", n))
	}
	if len(unshippable) > 0 {
		errs = append(errs, fmt.Errorf("clicks that cannot be shipped stay in %s", strings.Join(unshippable, ", ")))
	}
	return errors.Join(errs...)
}

// endLeases ends the leases of earlier processes on a spool.
func endLeases(ctx context.Context, links limit.Store, left *spool.Spool, log *slog.Logger) error {
	for tries := 0; ; tries++ {
		err := limit.EndLeft(ctx, links, left)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("unused leases of limited links are not given back: %w", err)
		case tries == 0:
			log.Warn("cannot give back unused leases of limited links, retrying", "error", err)
		}
		stream.Sleep(ctx, time.Second)
	}
}
