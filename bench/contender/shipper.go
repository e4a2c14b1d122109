package contender

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/workload"
	"linkstream/edge/spool"
	"linkstream/schema/stream"
)

const (
	spoolBytes   = 1024 // of disk per click, at most
	shippedPoll  = time.Millisecond
	sampleClicks = 4096 // different clicks in a spool
)

// Shipping is an edge's shipper that ships a full spool, a new one in every round.
type Shipping struct {
	*Contender
	Rounds  int
	Shipped int64 // clicks that the broker has acknowledged, in all rounds

	client *stream.Client
	dir    string
	clicks int
	spool  *spool.Spool
}

// Ship returns a shipper that ships clicks from spools in dir.
func Ship(client *stream.Client, dir string, clicks int) *Shipping {
	s := &Shipping{client: client, dir: dir, clicks: clicks}
	s.Contender = &Contender{Name: "shipper", Processes: []proc.Process{thisProcess()},
		Prepare: s.prepare, Work: s.work}
	return s
}

// prepare fills a new spool.
func (s *Shipping) prepare(context.Context) (err error) {
	s.Rounds++
	cfg := spool.DefaultConfig()
	cfg.Dir = filepath.Join(s.dir, fmt.Sprint(s.Rounds))
	cfg.MaxBytes = max(cfg.MaxBytes, int64(s.clicks)*spoolBytes)
	if s.spool, err = spool.Open(cfg, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	clicks := workload.SampleClicks(sampleClicks)
	for i := range s.clicks {
		if !s.spool.Append(uint64(i), &clicks[i%len(clicks)]) {
			return fmt.Errorf("the spool is full after %d of %d clicks", i, s.clicks)
		}
	}
	return nil
}

func (s *Shipping) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	began := time.Now()
	shipper := spool.NewShipper(s.spool, s.client, slog.New(slog.DiscardHandler))
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { shipper.Run(running); close(ended) }()
	tick := time.NewTicker(shippedPoll)
	defer tick.Stop()
	for s.spool.Pending() > 0 && ctx.Err() == nil {
		<-tick.C
	}
	elapsed := time.Since(began)
	stop()
	<-ended
	s.Shipped += int64(shipper.Shipped())
	if err := s.spool.Close(); err != nil {
		return load.Result{}, err
	}
	return load.Result{Answers: int64(s.clicks), Elapsed: elapsed}, os.RemoveAll(s.dir)
}
