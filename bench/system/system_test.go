package system_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/bench/system"
	"linkstream/schema/testkit"
)

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*system.Config)
		want   []string // parts of the error; none for a valid configuration
	}{
		{"the defaults are valid", func(*system.Config) {}, nil},
		{"a target on this machine may get load", func(c *system.Config) {
			c.Edge, c.API = "http://localhost:8080", "http://[::1]:8081"
		}, nil},
		{"other machines get no load", func(c *system.Config) { c.Edge = "http://192.0.2.1:8080" },
			[]string{"-edge:", "loopback", "-i-own-this-target"}},
		{"names of other machines neither", func(c *system.Config) { c.API = "http://localhost.example.org:80" },
			[]string{"-api:", "loopback"}},
		{"unless their owner allows it", func(c *system.Config) { c.Edge, c.Own = "http://192.0.2.1:8080", true }, nil},
		{"a port is needed", func(c *system.Config) { c.Edge = "http://127.0.0.1" }, []string{"-edge:", "host:port"}},
		{"so is http", func(c *system.Config) { c.API = "https://127.0.0.1:8081" }, []string{"-api:", "http://"}},
		{"all errors appear at once", func(c *system.Config) { c.Engines, c.Edge, c.API = "fast", "", "x" },
			[]string{"-engines:", "-edge:", "-api:"}},
		{"a started system needs no target", func(c *system.Config) { c.Start, c.Edge, c.API = true, "", "" }, nil},
		{"engines are named together", func(c *system.Config) {
			c.Start, c.Engines, c.Kafka = true, system.Real, "127.0.0.1:9092"
		}, []string{"all three"}},
		{"and are real ones", func(c *system.Config) {
			c.Start, c.Postgres, c.Kafka, c.ClickHouse = true, "postgres://127.0.0.1/x", "127.0.0.1:9092",
				"clickhouse://127.0.0.1/x"
		}, []string{"-engines=real"}},
		{"on this machine", func(c *system.Config) {
			c.Start, c.Engines = true, system.Real
			c.Postgres, c.Kafka, c.ClickHouse = "postgres://db.example.org/x", "127.0.0.1:9092", "clickhouse://127.0.0.1/x"
		}, []string{"loopback"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := system.DefaultConfig()
			tt.change(&cfg)
			err := cfg.Validate()
			if len(tt.want) == 0 {
				testkit.Must(t, err)
			}
			for _, part := range tt.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want %q in it", err, part)
				}
			}
		})
	}
}

// serve answers every request with the text that answer returns.
func serve(t *testing.T, answer func() (status int, text string)) (base string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, text := answer()
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestReadMetric(t *testing.T) {
	base := serve(t, func() (int, string) {
		return http.StatusOK, "# HELP clicks_total Clicks.\n# TYPE clicks_total counter\nclicks_total{lane=\"0\"} 40\n" +
			"clicks_total{lane=\"1\"} 2\nclicks_total_ever 7\nother x\n"
	})
	sum, err := system.ReadMetric(t.Context(), base, "clicks_total")
	testkit.Must(t, err)
	testkit.Equal(t, "sum", sum, 42)
	if _, err := system.ReadMetric(t.Context(), base, "clicks"); err == nil ||
		!strings.Contains(err.Error(), `no metric "clicks"`) {
		t.Errorf("error %v for a metric that is missing", err)
	}
	if _, err := system.ReadMetric(t.Context(), base, "other"); err == nil {
		t.Error("no error for a value that is no number")
	}
}

func TestCounter(t *testing.T) {
	var counted atomic.Int64
	base := serve(t, func() (int, string) { return http.StatusOK, fmt.Sprintf("clicks_total %d\n", counted.Add(10)) })
	c := system.Counter{Base: base, Metric: "clicks_total"}
	testkit.Must(t, c.Await(t.Context(), 30))
	testkit.Equal(t, "reads until 30 clicks are counted", counted.Load(), 30)
	testkit.Must(t, c.Await(t.Context(), 20))
	testkit.Equal(t, "reads until 20 more are counted", counted.Load(), 50)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.Await(ctx, 1_000_000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v when clicks are missing", err)
	}
}

func TestAnswers(t *testing.T) {
	var ready atomic.Bool
	base := serve(t, func() (int, string) {
		if ready.Load() {
			return http.StatusOK, ""
		}
		return http.StatusServiceUnavailable, ""
	})
	if err := system.Answers(t.Context(), base); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("error %v", err)
	}
	ready.Store(true)
	testkit.Must(t, system.Answers(t.Context(), base))
}

func TestFreeAddrs(t *testing.T) {
	addrs, err := system.FreeAddrs(20)
	testkit.Must(t, err)
	seen := map[string]bool{}
	for _, addr := range addrs {
		seen[addr] = true
	}
	testkit.Equal(t, "different addresses", len(seen), 20)
}
