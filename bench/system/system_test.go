package system_test

import (
	"strings"
	"testing"

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
