package verify

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"linkstream/schema"
	"linkstream/schema/service"
)

// unknownCode is the exit code of the command if the sources cannot be read. It is 1 if they do not add up.
const unknownCode = 2

// maxLanesBytes bounds a file of -lanes.
const maxLanesBytes = 256 << 20

// Command is the name of the command, and Help what it does.
const (
	Command = "verify"
	Help    = "check that every recorded click is counted, pending, dropped or set aside; code 1 if not"
)

// Config holds the options of the command.
type Config struct {
	Lanes string // files with reports about spools, separated by commas; "-": standard input
	JSON  bool
}

// RegisterFlags binds the options to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Lanes, "lanes", c.Lanes,
		"verify: `files` that \"edge lanes\" has printed, separated by commas; -: standard input")
	fs.BoolVar(&c.JSON, "json", c.JSON, "verify: print JSON")
}

// Validate always succeeds.
func (c *Config) Validate() error { return nil }

// RunCommand compares the sources, which have no Spools yet, and prints the report. own returns the reports about the
// program's own spools; nil if it has none. The error has the exit code for service.Main.
func RunCommand(ctx context.Context, cfg Config, sources Sources, own func() ([]schema.SpoolReport, error),
	stdin io.Reader, out io.Writer) error {
	given, err := readReports(cfg.Lanes, stdin)
	if err != nil {
		return Unknown(err)
	}
	sources.Spools = func() ([]schema.SpoolReport, error) {
		if own == nil {
			return given, nil
		}
		reports, err := own()
		return append(reports, given...), err
	}
	report, err := Run(ctx, sources)
	if err == nil {
		err = ctx.Err() // before the second look
	}
	if err != nil {
		return Unknown(err)
	}
	write := report.WriteText
	if cfg.JSON {
		write = report.WriteJSON
	}
	if err := write(out); err != nil {
		return Unknown(err)
	}
	return report.Err()
}

// Unknown makes err end the program with the code which says that nothing is known.
func Unknown(err error) error {
	return &service.ExitError{Code: unknownCode, Err: fmt.Errorf("verify: %w", err)}
}

// readReports reads the files, which hold any number of reports each.
func readReports(files string, stdin io.Reader) (reports []schema.SpoolReport, err error) {
	if files == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(files, ",") {
		r := stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				return nil, fmt.Errorf("-lanes: %w", err)
			}
			defer f.Close()
			r = f
		}
		some, err := decodeReports(io.LimitReader(r, maxLanesBytes))
		if err != nil {
			return nil, fmt.Errorf("-lanes: %s: %w", name, err)
		}
		reports = append(reports, some...)
	}
	return reports, nil
}

// decodeReports fails unless there is at least one report, and nothing else.
func decodeReports(r io.Reader) (reports []schema.SpoolReport, err error) {
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	for {
		var report schema.SpoolReport
		err := decoder.Decode(&report)
		if errors.Is(err, io.EOF) && len(reports) > 0 {
			return reports, nil
		}
		if err == nil && report.At.IsZero() {
			err = errors.New("it has no time")
		}
		for _, lane := range report.Lanes {
			err = errors.Join(err, lane.Validate())
		}
		if err != nil {
			return nil, fmt.Errorf("this is not what \"edge lanes\" prints: %w", err)
		}
		reports = append(reports, report)
	}
}
