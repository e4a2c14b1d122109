package service_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// engine is a Section for tests.
type engine struct {
	Name  string
	Size  int
	Pause time.Duration
	Fast  bool
}

func newEngine() *engine { return &engine{Name: "default", Size: 1, Pause: time.Second} }

func (e *engine) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&e.Name, "engine.name", e.Name, "`name` of the engine")
	fs.IntVar(&e.Size, "engine.max-size", e.Size, "`size` of the engine")
	fs.DurationVar(&e.Pause, "engine.pause", e.Pause, "`time` between strokes")
	fs.BoolVar(&e.Fast, "engine.fast", e.Fast, "run fast")
}

func (e *engine) Validate() error {
	var errs []error
	if e.Name == "" {
		errs = append(errs, errors.New("-engine.name: is empty"))
	}
	if e.Size < 1 {
		errs = append(errs, fmt.Errorf("-engine.max-size: %d is not above 0", e.Size))
	}
	return errors.Join(errs...)
}

// wheels is another Section.
type wheels int

func (w *wheels) RegisterFlags(fs *flag.FlagSet) {
	fs.IntVar((*int)(w), "wheels", 4, "`number` of wheels")
}

func (w *wheels) Validate() error {
	if *w != 4 {
		return fmt.Errorf("-wheels: %d is not 4", *w)
	}
	return nil
}

func parse(e *engine, args ...string) (positional []string, err error) {
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return service.Parse(fs, args, e, new(service.LogConfig))
}

func TestParsePrecedence(t *testing.T) {
	t.Setenv("LINKSTREAM_ENGINE_NAME", "environment")
	t.Setenv("LINKSTREAM_ENGINE_MAX_SIZE", "7")
	t.Setenv("LINKSTREAM_ENGINE_FAST", "true")
	t.Setenv("LINKSTREAM_ENGINE_PAUSE", "") // counts as not set
	for name, c := range map[string]struct {
		args []string
		want engine
	}{
		"the environment overrides defaults": {nil, engine{"environment", 7, time.Second, true}},
		"a flag overrides the environment": {
			[]string{"-engine.name=flag", "-engine.max-size", "9", "-engine.fast=false"}, engine{"flag", 9, time.Second, false}},
		"a flag after arguments overrides the environment": {
			[]string{"do", "it", "-engine.name", "flag"}, engine{"flag", 7, time.Second, true}},
		"a flag with the default value overrides the environment": {
			[]string{"-engine.name=default", "-engine.max-size=1"}, engine{"default", 1, time.Second, true}},
		"the last of repeated flags is used": {
			[]string{"-engine.name=first", "x", "-engine.name=last"}, engine{"last", 7, time.Second, true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newEngine()
			if _, err := parse(got, c.args...); err != nil || *got != c.want {
				t.Errorf("got %+v, error %v; want %+v", *got, err, c.want)
			}
		})
	}
}

func TestParsePositionalArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args, want []string
		engine     engine
	}{
		"none":          {nil, nil, *newEngine()},
		"without flags": {[]string{"revoke", "12"}, []string{"revoke", "12"}, *newEngine()},
		"before flags": {[]string{"add", "-engine.max-size=2"}, []string{"add"},
			engine{"default", 2, time.Second, false}},
		"after flags": {[]string{"-engine.max-size", "2", "add"}, []string{"add"},
			engine{"default", 2, time.Second, false}},
		"after a flag of bool": {[]string{"-engine.fast", "add"}, []string{"add"}, engine{"default", 1, time.Second, true}},
		"between flags": {[]string{"-engine.max-size=2", "a", "b", "--engine.name=n", "c"}, []string{"a", "b", "c"},
			engine{"n", 2, time.Second, false}},
		"a dash alone":     {[]string{"-", "-engine.fast"}, []string{"-"}, engine{"default", 1, time.Second, true}},
		"two dashes alone": {[]string{"--"}, nil, *newEngine()},
		"everything after two dashes": {[]string{"-engine.fast", "--", "a", "-engine.max-size=2", "--", "b"},
			[]string{"a", "-engine.max-size=2", "--", "b"}, engine{"default", 1, time.Second, true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newEngine()
			positional, err := parse(got, c.args...)
			if err != nil || !slices.Equal(positional, c.want) || *got != c.engine {
				t.Errorf("got %q, %+v, error %v; want %q, %+v", positional, *got, err, c.want, c.engine)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	wantAll := func(t *testing.T, err error, texts ...string) {
		t.Helper()
		if err == nil {
			t.Fatal("got no error")
		}
		for _, text := range texts {
			if n := strings.Count(err.Error(), text); n != 1 {
				t.Errorf("%q occurs %d times in the error, want once:\n%v", text, n, err)
			}
		}
	}
	t.Run("all values that cannot be parsed or are invalid are reported", func(t *testing.T) {
		t.Setenv("LINKSTREAM_ENGINE_FAST", "perhaps")
		_, err := parse(newEngine(), "-engine.max-size=many", "add", "-engine.pause=long", "-engine.name=",
			"-log.level=shout")
		wantAll(t, err, `-engine.max-size (or LINKSTREAM_ENGINE_MAX_SIZE): "many"`, "-engine.name: is empty",
			`-engine.pause (or LINKSTREAM_ENGINE_PAUSE): "long"`, `-engine.fast (or LINKSTREAM_ENGINE_FAST): "perhaps"`,
			`-log.level (or LINKSTREAM_LOG_LEVEL): "shout"`)
	})
	t.Run("invalid settings of several sections are reported", func(t *testing.T) {
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		_, err := service.Parse(fs, []string{"-engine.max-size=0", "-wheels=3"}, newEngine(), new(wheels))
		wantAll(t, err, "-engine.max-size: 0", "-wheels: 3")
	})
	t.Run("an invalid environment variable is ignored if the flag is set", func(t *testing.T) {
		t.Setenv("LINKSTREAM_ENGINE_MAX_SIZE", "many")
		if _, err := parse(newEngine(), "-engine.max-size=3"); err != nil {
			t.Error(err)
		}
	})
	t.Run("an unknown flag is an error", func(t *testing.T) {
		_, err := parse(newEngine(), "add", "-engine.colour=red")
		wantAll(t, err, "-engine.colour")
	})
	t.Run("a flag without its value is an error", func(t *testing.T) {
		_, err := parse(newEngine(), "-engine.name")
		wantAll(t, err, "-engine.name")
	})
}

// former is a Section with a flag of a former release.
type former struct{}

func (former) RegisterFlags(fs *flag.FlagSet) {
	service.Removed(fs, "engine.choke", "engines have none")
}
func (former) Validate() error { return nil }

func TestRemovedFlag(t *testing.T) {
	logged := func(args ...string) string {
		t.Helper()
		var log service.LogConfig
		_, err := service.Parse(flag.NewFlagSet("test", flag.ContinueOnError), args, former{}, &log)
		testkit.Must(t, err)
		var output bytes.Buffer
		log.Logger(&output)
		return output.String()
	}
	testkit.Equal(t, "without it", logged(), "")
	const warning = `level=WARN msg="a flag has no effect: remove it" flag=-engine.choke reason="engines have none"`
	if got := logged("-engine.choke=3"); !strings.Contains(got, warning) {
		t.Errorf("got %q", got)
	}
	t.Setenv("LINKSTREAM_ENGINE_CHOKE", "3")
	if got := logged(); strings.Count(got, warning) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestParseHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"add", "-h"}} {
		var output bytes.Buffer
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(&output)
		if _, err := service.Parse(fs, args, newEngine()); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%q: got %v", args, err)
		}
		for _, text := range []string{"-engine.name name\n    \tname of the engine (default default)",
			"-engine.fast\n    \trun fast"} {
			if n := strings.Count(output.String(), text); n != 1 {
				t.Errorf("%q: %q occurs %d times in\n%s", args, text, n, output.String())
			}
		}
	}
}

func TestParseConcurrently(t *testing.T) {
	var programs sync.WaitGroup
	for i := range 8 {
		programs.Go(func() {
			e := newEngine()
			_, err := parse(e, fmt.Sprintf("-engine.max-size=%d", i+1))
			if err != nil || e.Size != i+1 || e.Name != "default" {
				t.Errorf("program %d: got %+v, error %v", i, *e, err)
			}
		})
	}
	programs.Wait()
}

func TestLogConfig(t *testing.T) {
	var log service.LogConfig
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	_, err := service.Parse(fs, []string{"-log.level=warn", "-log.json"}, &log)
	if err != nil || log.Level != slog.LevelWarn {
		t.Fatalf("got %+v, error %v", log, err)
	}
	var output bytes.Buffer
	logger := log.Logger(&output)
	logger.Info("quiet")
	logger.Warn("loud", "n", 1)
	got := output.String()
	if !strings.HasPrefix(got, "{") || !strings.Contains(got, `"msg":"loud","n":1`) || strings.Contains(got, "quiet") {
		t.Errorf("got %q", got)
	}
}

func TestEdgeURL(t *testing.T) {
	base := service.DefaultEdgeURL
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	service.EdgeURLVar(fs, &base)
	t.Setenv("LINKSTREAM_EDGE_URL", "https://Sho.RT/")
	if _, err := service.Parse(fs, nil); err != nil || base.String() != "https://sho.rt" {
		t.Errorf("%q, %v", base, err)
	}
}
