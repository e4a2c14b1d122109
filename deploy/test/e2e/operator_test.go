package e2e_test

import (
	"bufio"
	"fmt"
	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The forms of what a first start prints.
var (
	tokenForm = regexp.MustCompile(`ls_[0-9A-Za-z_-]{32,}`)
	curlForm  = regexp.MustCompile(`(?m)\bcurl .*$`)
)

// stopsWithin is how soon a system stops whose engines are up.
const stopsWithin = 20 * time.Second

// TestStopUnderLoad stops the system by each signal. No click is lost.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	owner := s.owner()
	owner.Alias(t, "drained", "https://example.com/")
	load := startLoad([]string{s.edge}, 1, visitPause, target{hash: "drained"})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		s.awaitRise(t, "ingest", counterCounted, 1)
		var ended []*launch.Process
		testkit.Follows(t, stopsWithin, func(try int) func() error {
			if try > 0 {
				s.start(t)
			}
			ended = nil
			for _, p := range s.programs {
				ended = append(ended, p.process)
			}
			return func() error {
				s.end(t, sig)
				return nil
			}
		})
		for _, p := range ended {
			lines := strings.Split(strings.TrimSpace(p.Output.String()), "\n")
			last, reason := lines[len(lines)-1], fmt.Sprintf(`msg=stopped reason="%s signal received"`, sig)
			if !strings.Contains(last, reason) {
				t.Errorf("the last line does not say why the program has stopped: %s", last)
			}
		}
		s.start(t)
	}
	checkTotals(t, owner, load.stop(t))
}

func TestAdminCommands(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	t.Run("account add prints the password", func(t *testing.T) {
		if out := s.admin(t, "account", "add", "new@example.com"); len(out) < 12 || strings.ContainsAny(out, " \n") {
			t.Errorf("printed %q", out)
		}
	})
	t.Run("token add prints the token", func(t *testing.T) {
		out := s.admin(t, "token", "add", "new@example.com")
		if tokenForm.FindString(out) != out {
			t.Errorf("printed %q", out)
		}
		caller{API: s.api, Token: out}.Page(t, "")
	})
	t.Run("domain add prints the id", func(t *testing.T) {
		if id := s.domain(t, "new@example.com", "new.example.org"); number(t, object{"id": id}, "id") < 1 {
			t.Errorf("printed %v", id)
		}
	})
	t.Run("one account has a verified host, several may have it unverified", func(t *testing.T) {
		s.admin(t, "domain", "add", s.email, "shared.example.org")
		s.domain(t, "new@example.com", "shared.example.org")
		_, _, code := s.programs[0].command(t, "domain", "add", s.email, "new.example.org", "--verified")
		if code == 0 {
			t.Error("two accounts have the same verified host")
		}
	})
	t.Run("an invalid command fails with a reason on stderr", func(t *testing.T) {
		out, errOut, code := s.programs[0].command(t, "account", "suspend", "nobody@example.com")
		if code == 0 || out != "" || errOut == "" || strings.Contains(errOut, "goroutine ") {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errOut)
		}
	})
	t.Run("import is completed after kill -9, and exported", func(t *testing.T) { testImportAndExport(t, s) })
	t.Run("migrate can run at any time", func(t *testing.T) {
		s.admin(t, "migrate")
		s.owner().Page(t, "")
	})
	t.Run("commands work while the service is down", func(t *testing.T) {
		s.stop(t)
		token := s.admin(t, "token", "add", s.email)
		s.start(t)
		caller{API: s.api, Token: token}.Page(t, "")
	})
}

func TestOperatorPaths(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	s.owner().Page(t, "") // some metrics appear with the first request
	for _, p := range s.programs {
		for _, path := range []string{"/healthz", "/readyz"} {
			t.Run(p.name+path, func(t *testing.T) {
				if a := call(t, http.MethodGet, p.ops+path, ""); a.Status != http.StatusOK {
					t.Error(a)
				}
			})
		}
		t.Run(p.name+"/metrics", func(t *testing.T) { testMetrics(t, p) })
	}
	for name, base := range map[string]string{"edge": s.edge, "api": s.api} {
		t.Run("the public port of "+name+" has nothing for operators", func(t *testing.T) {
			for _, path := range []string{"/metrics", "//metrics", "/%6detrics", "/x/../metrics", "/readyz", "/healthz"} {
				for _, host := range []string{address(base), "localhost", "metrics.example.com"} {
					if got := rawStatus(t, base, path, host); got != http.StatusNotFound {
						t.Errorf("%s on host %s: status %d, want 404", path, host, got)
					}
				}
			}
		})
	}
}

// rawStatus returns the status of the answer to a request for a path that is sent as it is.
func rawStatus(t *testing.T, base, path, host string) int {
	t.Helper()
	conn, err := net.Dial("tcp", address(base))
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host)
	testkit.Must(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testkit.Must(t, err)
	res.Body.Close()
	return res.StatusCode
}

// testMetrics requires that a program's page of metrics has the metrics of its services.
func testMetrics(t *testing.T, p *program) {
	a := call(t, http.MethodGet, p.ops+"/metrics", "")
	if a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
		t.Error(a)
	}
	services := []string{p.name}
	if p.name == "standalone" {
		services = []string{"edge", "api", "ingest"}
	}
	for _, name := range services {
		if own := fmt.Sprintf("\nlinkstream_%s_", name); !strings.Contains(a.Raw, own) {
			t.Errorf("no metric named %s…: %v", own, a)
		}
	}
	for line := range strings.Lines(a.Raw) {
		if !metricForm.MatchString(strings.TrimSpace(line)) {
			t.Errorf("not Prometheus's text format: %q", line)
		}
	}
}

var metricForm = regexp.MustCompile(`^(#.*|[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? \S+( \d+)?)?$`)
