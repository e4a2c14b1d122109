package e2e_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

var (
	emailForm    = regexp.MustCompile(`\S+@\S+`)
	passwordForm = regexp.MustCompile(`(?i)password`)
	tokenForm    = regexp.MustCompile(`ls_[0-9A-Za-z_-]{32,}`)
	curlForm     = regexp.MustCompile(`(?m)^.*?\b(curl .*)$`)
)

func TestFirstStart(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.programs[0].env = nil // presets no account
	s.start(t)
	var first string
	testkit.Succeeds(t, func() error {
		if first = s.programs[0].process.Output.String(); !curlForm.MatchString(first) {
			return fmt.Errorf("no curl command in:\n%s", first)
		}
		return nil
	})
	token := tokenForm.FindString(first)

	t.Run("prints the account with its password and a token", func(t *testing.T) {
		if token == "" || !emailForm.MatchString(first) || !passwordForm.MatchString(first) {
			t.Errorf("no email, password or token in:\n%s", first)
		}
		caller{API: s.api, Token: token}.Get(t, "/api/v1/links").Want(t, http.StatusOK)
	})
	t.Run("prints a curl command that works", func(t *testing.T) {
		command := curlForm.FindStringSubmatch(first)[1]
		out, err := exec.CommandContext(t.Context(), "bash", "-c", command).Output()
		if made, _ := decode(string(out)).(object); err != nil || made["success"] != true {
			t.Errorf("%s\nprints %s (%v)", command, out, err)
		}
	})
	t.Run("prints the secrets only once", func(t *testing.T) {
		s.stop(t)
		s.start(t)
		process := s.programs[0].process
		s.stop(t) // its output is complete now
		second := process.Output.String()
		if tokenForm.MatchString(second) || curlForm.MatchString(second) || passwordForm.MatchString(second) {
			t.Errorf("the second start prints:\n%s", second)
		}
		s.start(t)
		caller{API: s.api, Token: token}.Get(t, "/api/v1/links").Want(t, http.StatusOK)
	})
}

func TestStartAfterAFailedFirstStartPrintsTheSecrets(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.programs[0].env = nil
	taken, err := net.Listen("tcp", address(s.api))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if out := s.programs[0].fails(t, s.programs[0].args...); !strings.Contains(out, address(s.api)) {
		t.Errorf("the error does not name the address in use:\n%s", out)
	}
	taken.Close()
	s.start(t)
	testkit.Succeeds(t, func() error {
		if out := s.programs[0].process.Output.String(); !tokenForm.MatchString(out) || !passwordForm.MatchString(out) {
			return fmt.Errorf("no password or token in:\n%s", out)
		}
		return nil
	})
}

func TestEnvironmentPresetsTheFirstAccount(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	s.owner().Page(t, "")
	t.Run("the data contains neither the token nor the password", func(t *testing.T) {
		added := s.admin(t, "token", "add", s.email)
		s.stop(t)
		err := filepath.WalkDir(s.data, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			for _, secret := range []string{s.token, s.password, added} {
				if bytes.Contains(content, []byte(secret)) {
					t.Errorf("%s contains a secret", path)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("a token that is too short is rejected", func(t *testing.T) {
		s := newSystem(t)
		s.programs[0].env = []string{"LINKSTREAM_BOOTSTRAP_TOKEN=ls_short"}
		if out := s.programs[0].fails(t, s.programs[0].args...); !strings.Contains(strings.ToLower(out), "token") {
			t.Errorf("the error does not name the token:\n%s", out)
		}
	})
}

// stopsWithin is how soon a system stops whose engines are up.
const stopsWithin = 20 * time.Second

func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run("loses no click: "+sig.String(), func(t *testing.T) {
			onBothKinds(t, func(t *testing.T, s *system) { testStop(t, s, sig) })
		})
	}
}

func testStop(t *testing.T, s *system, sig syscall.Signal) {
	owner := s.owner()
	owner.Alias(t, "drained", "https://example.com/")
	load := startLoad([]string{s.edge}, 1, 0, target{hash: "drained"})
	testkit.Succeeds(t, func() error {
		if owner.Total(t, "drained") == 0 {
			return errors.New("no click is counted yet")
		}
		return nil
	})
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
		if last := lines[len(lines)-1]; !strings.Contains(last, fmt.Sprintf(`msg=stopped reason="%s signal received"`, sig)) {
			t.Errorf("the last line does not say why the program has stopped: %s", last)
		}
	}
	targets := load.stop(t)
	s.start(t)
	checkTotals(t, owner, targets)
}

func TestSecondInstanceOnTheSameDataFails(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	other := newSystem(t)
	other.programs[0].args = append(other.programs[0].args, "-data", s.data)
	out := other.programs[0].fails(t, other.programs[0].args...)
	if !strings.Contains(out, s.data) && !strings.Contains(out, "data") {
		t.Errorf("the error does not name the data folder:\n%s", out)
	}
	if strings.Contains(out, "panic") || strings.Contains(out, "goroutine") {
		t.Errorf("the error holds a stack trace:\n%s", out)
	}
	s.owner().Page(t, "") // the first instance still works
}

func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	t.Run("all flags are reported in one error", func(t *testing.T) {
		s := newSystem(t)
		out := s.programs[0].fails(t, "-data", s.data, "-edge.listen", "nonsense", "-api.listen", "127.0.0.1:99999999",
			"-ops.listen", "nonsense", "-edge.url", "ftp://example.com")
		for _, name := range []string{"edge.listen", "api.listen", "ops.listen", "edge.url"} {
			if !strings.Contains(out, name) {
				t.Errorf("-%s is not reported in:\n%s", name, out)
			}
		}
		if _, err := os.Stat(s.data); err == nil {
			t.Error("the data folder was created")
		}
	})
	t.Run("all variables are reported in one error", func(t *testing.T) {
		s := newSystem(t)
		s.programs[0].env = []string{"LINKSTREAM_EDGE_LISTEN=nonsense", "LINKSTREAM_API_LISTEN=nonsense"}
		out := s.programs[0].fails(t, "-data", s.data)
		if !strings.Contains(out, "edge.listen") || !strings.Contains(out, "api.listen") {
			t.Errorf("printed:\n%s", out)
		}
	})
	t.Run("an unknown flag is reported", func(t *testing.T) {
		if out := newSystem(t).programs[0].fails(t, "-no.such.flag"); !strings.Contains(out, "no.such.flag") {
			t.Errorf("printed:\n%s", out)
		}
	})
	t.Run("an unknown command is reported", func(t *testing.T) {
		s := newSystem(t)
		if out := s.programs[0].fails(t, "-data", s.data, "no-such-command"); !strings.Contains(out, "no-such-command") {
			t.Errorf("printed:\n%s", out)
		}
	})
	t.Run("a command without its argument fails", func(t *testing.T) {
		s := newSystem(t)
		s.programs[0].fails(t, "-data", s.data, "token", "add")
	})
}

func TestSettingsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.programs[0].args = nil
	s.programs[0].env = append(s.programs[0].env, "LINKSTREAM_DATA="+s.data, "LINKSTREAM_EDGE_LISTEN="+address(s.edge),
		"LINKSTREAM_API_LISTEN="+address(s.api), "LINKSTREAM_OPS_LISTEN="+address(s.programs[0].ops),
		"LINKSTREAM_EDGE_URL=https://short.example", "LINKSTREAM_OPS_PUBLIC=true")
	s.start(t)
	for _, base := range []string{s.edge, s.api} {
		if err := call(t, http.MethodGet, base+"/healthz", "").IsStatus(http.StatusOK); err != nil {
			t.Errorf("-ops.public: %v", err)
		}
	}
	made := s.owner().Alias(t, "known", "https://example.com/")
	if made["short_url"] != "https://short.example/known" {
		t.Errorf("short_url is %v", made["short_url"])
	}
	s.click(t, "known", "Host", "short.example")
	id := s.domain(t, s.email, "links.example.org")
	custom := s.owner().Link(t, object{"long_url": "https://example.com/", "custom_alias": "known", "domain_id": id})
	if custom["short_url"] != "https://links.example.org/known" {
		t.Errorf("short_url is %v, want the scheme of -edge.url", custom["short_url"])
	}
}

func TestAdminCommands(t *testing.T) { t.Parallel(); onBothKinds(t, testAdminCommands) }

func testAdminCommands(t *testing.T, s *system) {
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
	for _, args := range [][]string{
		{"account", "add", "new@example.com"}, // taken
		{"account", "add", "nonsense"},
		{"account", "suspend", "nobody@example.com"},
		{"token", "add", "nobody@example.com"},
		{"token", "revoke", "987654"},
		{"token", "revoke", "nonsense"},
		{"domain", "add", "nobody@example.com", "x.example.org"},
		{"domain", "add", "new@example.com", "not a host"},
		{"domain", "verify", "nobodys.example.org"},
	} {
		t.Run("an invalid command fails with a reason on stderr: "+strings.Join(args, " "), func(t *testing.T) {
			out, errOut, code := s.programs[0].command(t, args...)
			if code == 0 || out != "" || errOut == "" || strings.Contains(errOut, "goroutine ") {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errOut)
			}
		})
	}
	t.Run("import is completed after kill -9, and export prints its links", func(t *testing.T) { testImportAndExport(t, s) })
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

func TestMigrateCreatesTheDatabases(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	if out := s.admin(t, "migrate"); out != "" {
		t.Errorf("printed %q", out)
	}
	for _, name := range []string{"links.db", "clicks.db"} {
		if info, err := os.Stat(filepath.Join(s.data, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestTokenRevoke(t *testing.T) { t.Parallel(); onBothKinds(t, testTokenRevoke) }

func testTokenRevoke(t *testing.T, s *system) {
	tokens := 1 // the first account's token
	revoke := func(t *testing.T, id func(token string) string) {
		t.Helper()
		var added caller
		testkit.Follows(t, 2*time.Second, func(int) func() error {
			added = caller{API: s.api, Token: s.admin(t, "token", "add", s.email)}
			tokens++
			added.Page(t, "")
			s.admin(t, "token", "revoke", id(added.Token))
			return func() error { return added.Get(t, "/api/v1/links").IsStatus(http.StatusUnauthorized) }
		})
		added.Get(t, "/api/v1/links").WantError(t, http.StatusUnauthorized)
		s.owner().Page(t, "") // other tokens stay valid
	}
	t.Run("by its id", func(t *testing.T) { revoke(t, func(string) string { return fmt.Sprint(tokens) }) })
	t.Run("by the token itself", func(t *testing.T) { revoke(t, func(token string) string { return token }) })
}

func TestOperatorPaths(t *testing.T) { t.Parallel(); onBothKinds(t, testOperatorPaths) }

func testOperatorPaths(t *testing.T, s *system) {
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
			for _, path := range []string{"/metrics", "//metrics", "/%6detrics", "/x/../metrics", "/readyz", "/healthz", "/debug/pprof/"} {
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

// testMetrics requires that a program's page of metrics has those of its services, each with a help and a type.
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
	described := map[string]bool{}
	for line := range strings.Lines(a.Raw) {
		line = strings.TrimSpace(line)
		if !metricForm.MatchString(line) {
			t.Errorf("not Prometheus's text format: %q", line)
		}
		if f := strings.Fields(line); len(f) > 3 && f[0] == "#" {
			if described[f[1]+f[2]] {
				t.Errorf("%s of %s twice", f[1], f[2])
			}
			described[f[1]+f[2]] = true
		}
		name := ownMetric.FindString(line)
		family := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); described["TYPE"+base] {
				family = base
			}
		}
		if name != "" && (!described["HELP"+family] || !described["TYPE"+family]) {
			t.Errorf("no help or no type before %q", line)
		}
	}
}

var ownMetric = regexp.MustCompile(`^linkstream_\w+`)

var metricForm = regexp.MustCompile(`^(#.*|[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? \S+( \d+)?)?$`)
