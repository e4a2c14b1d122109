//go:build engines

package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/clickhouse/clickhousetest"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// engines are the real engines that all systems share, except clusters.
var engines enginetest.Engines

// suite returns a runner that runs the tests and then ends the browser and the engines.
func suite(m *testing.M) launch.Runner { return browsing{engines.Of(m)} }

type browsing struct{ tests launch.Runner }

func (b browsing) Run() int {
	code := b.tests.Run()
	endChromium()
	return code
}

// TestEngines starts the shared engines, before the parallel tests.
func TestEngines(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{
		"Postgres": engines.Postgres, "Kafka": engines.Kafka, "ClickHouse": engines.ClickHouse,
	} {
		if address(t) == "" {
			t.Errorf("%s has no address", name)
		}
	}
}

// startSystem starts a new system of three services on the shared engines. settings are variables.
func startSystem(t *testing.T, settings ...string) *system {
	t.Helper()
	s := newServices(t, sharedEngines(t), settings...)
	s.start(t)
	return s
}

// sharedEngines returns the variables with the addresses of the shared engines and of new databases on them. The one
// of ClickHouse has its tables: its migrations take half a second of CPU time.
func sharedEngines(t *testing.T) []string {
	t.Helper()
	env := emptyEngines(t)
	testkit.Must(t, clickhousetest.Migrate(t.Context(), setting(env, "LINKSTREAM_CLICKHOUSE_DSN")))
	return env
}

// emptyEngines is sharedEngines, but the programs migrate both databases.
func emptyEngines(t *testing.T) []string {
	t.Helper()
	return engineSettings(engines.Postgres(t), engines.Kafka(t), engines.ClickHouse(t))
}

func engineSettings(postgres, kafka, clickhouse string) []string {
	return []string{"LINKSTREAM_POSTGRES_DSN=" + postgres, "LINKSTREAM_KAFKA_BROKERS=" + kafka,
		"LINKSTREAM_CLICKHOUSE_DSN=" + clickhouse}
}

// newServices returns a system of one api, one ingest and one edge that are not started yet. engines are the variables
// with the engines' addresses, and settings are more variables.
func newServices(t *testing.T, engines []string, settings ...string) *system {
	t.Helper()
	s := emptySystem(t)
	topics := enginetest.Name()
	s.env = slices.Concat(engines, s.preset(), []string{patientLookups, "LINKSTREAM_EDGE_URL=" + s.edge,
		"LINKSTREAM_KAFKA_CLICKS_TOPIC=" + topics + ".clicks", "LINKSTREAM_KAFKA_DEAD_TOPIC=" + topics + ".dead",
		"LINKSTREAM_KAFKA_CHANGES_TOPIC=" + topics + ".changes", "LINKSTREAM_KAFKA_GROUP=" + topics}, settings)
	s.add(t, "api", s.api)
	s.add(t, "ingest", "")
	s.add(t, "edge", s.edge)
	return s
}

// setting returns the value of a variable of a system of services, "" if it is not set.
func (s *system) setting(name string) string { return setting(s.env, name) }

func setting(env []string, name string) string {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// add adds a program that serves the public at base, or not if that is "", to a system of services, without starting
// it. Each edge has its own spool.
func (s *system) add(t *testing.T, service, base string) *program {
	t.Helper()
	p := &program{name: service, base: base, ops: "http://" + testkit.FreeAddress(t)}
	p.env = append(slices.Clone(s.env), "LINKSTREAM_OPS_LISTEN="+address(p.ops),
		"LINKSTREAM_SPOOL_DIR="+filepath.Join(s.data, fmt.Sprintf("spool-%d", len(s.programs))))
	if base != "" {
		p.env = append(p.env, "LINKSTREAM_"+strings.ToUpper(service)+"_LISTEN="+address(base))
	}
	s.programs = append(s.programs, p)
	return p
}

// startAnother adds one more program of a service and returns it, with its base URL, when it is ready.
func (s *system) startAnother(t *testing.T, service string) (p *program, base string) {
	t.Helper()
	base = "http://" + testkit.FreeAddress(t)
	p = s.add(t, service, base)
	p.start(t)
	return p, base
}

// produce records clicks in the system's topic, as a shipper does.
func (s *system) produce(t *testing.T, batch *stream.Batch) {
	t.Helper()
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Clicks = s.setting("LINKSTREAM_KAFKA_BROKERS"), s.setting("LINKSTREAM_KAFKA_CLICKS_TOPIC")
	client := streamtest.NewClient(t, cfg)
	testkit.Succeeds(t, func() error { return client.Produce(t.Context(), 0, batch) })
}
