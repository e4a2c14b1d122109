//go:build !engines

package e2e_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// The forms of what a first start prints.
var (
	tokenForm    = regexp.MustCompile(`ls_[0-9A-Za-z_-]{32,}`)
	emailForm    = regexp.MustCompile(`\S+@\S+`)
	passwordForm = regexp.MustCompile(`(?i)password`)
)

func TestFirstStart(t *testing.T) {
	t.Parallel()
	s := newStandalone(t)
	s.programs[0].env = []string{"LINKSTREAM_EDGE_URL=" + s.edge} // presets no account
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
	t.Run("prints a curl command with them", func(t *testing.T) {
		command := curlForm.FindString(first)
		if !strings.Contains(command, token) || !strings.Contains(command, s.api+"/api/v1/shorten") {
			t.Error(command)
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
	s := newStandalone(t)
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
	s := startStandalone(t)
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
}

func TestSecondInstanceOnTheSameDataFails(t *testing.T) {
	t.Parallel()
	s := startStandalone(t)
	other := newStandalone(t)
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

// TestInvalidSettings requires that all are reported in one error, before anything is created.
func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	s := newStandalone(t)
	s.programs[0].env = []string{"LINKSTREAM_EDGE_LISTEN=nonsense"}
	out := s.programs[0].fails(t, "-data", s.data, "-api.listen", "127.0.0.1:99999999", "-edge.url", "ftp://example.com")
	for _, name := range []string{"edge.listen", "api.listen", "edge.url"} {
		if !strings.Contains(out, name) {
			t.Errorf("-%s is not reported in:\n%s", name, out)
		}
	}
	if _, err := os.Stat(s.data); err == nil {
		t.Error("the data folder was created")
	}
}

func TestSettingsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newStandalone(t)
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

func TestMigrateCreatesTheDatabases(t *testing.T) {
	t.Parallel()
	s := newStandalone(t)
	if out := s.admin(t, "migrate"); out != "" {
		t.Errorf("printed %q", out)
	}
	for _, name := range []string{"links.db", "clicks.db"} {
		if info, err := os.Stat(filepath.Join(s.data, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestCommandsOfStandaloneWithoutService runs commands while the service is down, or was killed and has left its files.
func TestCommandsOfStandaloneWithoutService(t *testing.T) {
	t.Parallel()
	s := startStandalone(t, longCaches)
	s.owner().Alias(t, "down", "https://example.com/")
	s.click(t, "down")
	s.programs[0].kill(t)
	s.admin(t, "link", "off", "down")
	s.start(t)
	testkit.Must(t, s.answer(t, "/down", http.StatusGone, "taken down"))
	wantPrivate(t, s.data)
	s.stop(t)
	s.admin(t, "link", "on", "down")
	s.start(t)
	s.click(t, "down")
}

// fails starts the program with these flags instead of its own, requires that it ends without a signal and with an exit
// code other than 0, and returns its output.
func (p *program) fails(t *testing.T, args ...string) string {
	t.Helper()
	started := launch.Start(t, launch.Command(launch.Program(t, p.name), p.env, args...))
	if err := started.Wait(t); started.Cmd.ProcessState.ExitCode() <= 0 {
		t.Errorf("%s ended with %v, want an exit code greater than 0", p.name, err)
	}
	return started.Output.String()
}
