// Package e2e_test tests the built programs from outside: what the documents promise is asked of running processes
// over the network, and nothing is known of their code. What clients are promised is asked of two kinds of system: all
// in one process on embedded engines, and the three services on real engines.
package e2e_test

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/deploy/testengines/enginetest"
)

// engines are the real ones, which all systems on real engines share.
var engines enginetest.Engines

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{engines.Of(m)}) }

// suite removes the programs that the tests have built before goleak looks.
type suite struct{ tests interface{ Run() int } }

func (s suite) Run() int {
	code := s.tests.Run()
	endChromium()
	os.RemoveAll(builtDir)
	return code
}

// TestEngines names the engines that the tests use, and starts them.
func TestEngines(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{
		"Postgres": engines.Postgres, "Kafka": engines.Kafka, "ClickHouse": engines.ClickHouse,
	} {
		if address(t) == "" {
			t.Errorf("%s has no address", name)
		}
	}
}

// system is a linkstream, up or down. It keeps its addresses and its data when it is started again.
type system struct {
	edge, api, ingest string // base URLs
	data              string // folder

	// The first account, preset by the environment.
	email, password, token string

	nodes []*node  // the first one has the admin commands
	env   []string // variables of all nodes on real engines
}

// onBothKinds runs a test of what every system promises on a new one of each kind, both at the same time.
func onBothKinds(t *testing.T, test func(t *testing.T, s *system)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, startSystem(t))
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		s := newServices(t, sharedEngines(t))
		s.start(t)
		test(t, s)
	})
}

// emptySystem returns a system of no programs.
func emptySystem(t *testing.T) *system {
	t.Helper()
	return &system{
		edge: "http://" + freeAddress(t), api: "http://" + freeAddress(t), ingest: "http://" + freeAddress(t),
		data:  filepath.Join(t.TempDir(), "data"),
		email: "owner@example.com", password: rand.Text(), token: "ls_" + rand.Text() + rand.Text(),
	}
}

// preset are the variables of the first account.
func (s *system) preset() []string {
	return []string{"LINKSTREAM_BOOTSTRAP_EMAIL=" + s.email, "LINKSTREAM_BOOTSTRAP_PASSWORD=" + s.password,
		"LINKSTREAM_BOOTSTRAP_TOKEN=" + s.token}
}

// newSystem returns a system on embedded engines that has not been started. settings are variables.
func newSystem(t *testing.T, settings ...string) *system {
	t.Helper()
	s := emptySystem(t)
	s.nodes = []*node{{program: "standalone", bases: []string{s.edge, s.api, s.ingest},
		args: []string{"-data", s.data, "-edge.listen", address(s.edge), "-api.listen", address(s.api),
			"-ingest.listen", address(s.ingest), "-edge.url", s.edge},
		env: append(s.preset(), settings...)}}
	return s
}

// startSystem returns a new system on embedded engines that is ready.
func startSystem(t *testing.T, settings ...string) *system {
	t.Helper()
	s := newSystem(t, settings...)
	s.start(t)
	return s
}

// sharedEngines returns the variables that lead to the shared engines, with databases of the test's own.
func sharedEngines(t *testing.T) []string {
	t.Helper()
	return engineSettings(engines.Postgres(t), engines.Kafka(t), engines.ClickHouse(t))
}

func engineSettings(postgres, kafka, clickhouse string) []string {
	return []string{"LINKSTREAM_POSTGRES_DSN=" + postgres, "LINKSTREAM_KAFKA_BROKERS=" + kafka,
		"LINKSTREAM_CLICKHOUSE_DSN=" + clickhouse}
}

// newServices returns a system of one api, one ingest and one edge that have not been started. at leads to the engines,
// and settings are more variables.
func newServices(t *testing.T, at []string, settings ...string) *system {
	t.Helper()
	s := emptySystem(t)
	topics := enginetest.Name()
	s.env = slices.Concat(at, s.preset(), []string{"LINKSTREAM_EDGE_URL=" + s.edge,
		"LINKSTREAM_KAFKA_CLICKS_TOPIC=" + topics + ".clicks", "LINKSTREAM_KAFKA_DEAD_TOPIC=" + topics + ".dead",
		"LINKSTREAM_KAFKA_CHANGES_TOPIC=" + topics + ".changes", "LINKSTREAM_KAFKA_GROUP=" + topics}, settings)
	s.add("api", s.api)
	s.add("ingest", s.ingest)
	s.add("edge", s.edge)
	return s
}

// setting returns the value of a variable that all nodes have, "" if they do not.
func (s *system) setting(name string) string {
	for _, v := range s.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// add adds a service that listens at base to a system of services, and does not start it. An edge has a spool of its own.
func (s *system) add(service, base string) *node {
	n := &node{program: service, bases: []string{base}, env: append(slices.Clone(s.env),
		"LINKSTREAM_"+strings.ToUpper(service)+"_LISTEN="+address(base),
		"LINKSTREAM_SPOOL_DIR="+filepath.Join(s.data, fmt.Sprintf("spool-%d", len(s.nodes))))}
	s.nodes = append(s.nodes, n)
	return n
}

// node returns the first node of a service: "edge", "api" or "ingest". The fields of the same names are its base URL.
func (s *system) node(service string) *node {
	for _, n := range s.nodes {
		if n.program == service {
			return n
		}
	}
	return nil
}

// startNode adds one more node of a service to a system of services and returns it when it is ready, with its base URL.
func (s *system) startNode(t *testing.T, service string) (n *node, base string) {
	t.Helper()
	base = "http://" + freeAddress(t)
	n = s.add(service, base)
	n.start(t)
	return n, base
}

// start starts all programs and returns when all are ready.
func (s *system) start(t *testing.T) {
	t.Helper()
	for _, n := range s.nodes {
		n.launch(t)
	}
	for _, n := range s.nodes {
		n.awaitReady(t)
	}
}

// stop asks all programs to end as a supervisor does.
func (s *system) stop(t *testing.T) {
	t.Helper()
	s.end(t, syscall.SIGTERM)
}

// end sends a signal to one program after the other and requires that each ends, in time and with exit code 0.
func (s *system) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	for _, n := range s.nodes {
		n.end(t, sig)
	}
}

// admin runs an admin command on the system's data, requires that it succeeds, and returns its one line of output.
func (s *system) admin(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := s.nodes[0].command(t, args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d, want 0\nstdout: %s\nstderr: %s", args, code, out, errOut)
	}
	return strings.TrimSuffix(out, "\n")
}

// freeAddress returns a loopback address that nothing listens on. Its port is below those that Linux gives to
// outgoing connections: while the service is down, one of them could take the port, even connect to itself on it.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+mathrand.IntN(22000)))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("found no free port")
	return ""
}

// address returns the host:port of a base URL.
func address(base string) string { return strings.TrimPrefix(base, "http://") }

// eventually calls ok until it returns nil, and fails the test with its last error when the time is up.
func eventually(t *testing.T, within time.Duration, ok func() error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); ; <-tick.C {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still so after %s: %v", within, err)
		}
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
