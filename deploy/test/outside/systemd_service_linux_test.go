//go:build deploy

package outside_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// systemService is standalone as the package runs it in a copy of this machine, with HTTPS by certificates in files.
type systemService struct {
	m      *machine
	roots  *x509.CertPool // of its certificate
	token  string
	client http.Client
}

// startInstalled enables and starts standalone, and makes an account.
func startInstalled(t *testing.T, m *machine, roots *x509.CertPool) *systemService {
	t.Helper()
	s := &systemService{m: m, roots: roots}
	s.client.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return m.Dial("127.0.0.1:8081") }}
	m.Run(t, `install -d -o root -g linkstream -m 750 /etc/linkstream/tls
		install -o root -g linkstream -m 640 /packages/tls.* /etc/linkstream/tls
		printf '%s\n' LINKSTREAM_EDGE_URL=https://sho.rt LINKSTREAM_EDGE_TLS_CERT=/etc/linkstream/tls/tls.crt \
			LINKSTREAM_EDGE_TLS_KEY=/etc/linkstream/tls/tls.key \
			>>/etc/linkstream/standalone.env
		systemctl enable linkstream-standalone linkstream-standalone-edge-tls.socket`)
	s.start(t)
	const asUser = `runuser -u linkstream -- linkstream-standalone -data /var/lib/linkstream/standalone `
	m.Run(t, asUser+`account add owner@example.com`)
	s.token = strings.TrimSpace(m.Run(t, asUser+`token add owner@example.com`))
	return s
}

// start starts standalone and waits until it is ready.
func (s *systemService) start(t *testing.T) {
	t.Helper()
	s.m.Run(t,
		`systemctl start linkstream-standalone
		LINKSTREAM_EDGE_URL=https://sho.rt timeout 60 sh -c 'until linkstream-standalone health ready; do sleep 0.1; done' ||
		{ journalctl --no-pager --unit linkstream-standalone; exit 1; }`)
}

// call sends a request to the API.
func (s *systemService) call(method, path, body string) (status int, answer string, err error) {
	req, err := http.NewRequest(method, "http://links.example.com"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// visit follows the link on a connection of its own.
func (s *systemService) visit() error {
	conn, err := s.m.Dial("127.0.0.1:8080")
	if err != nil {
		return err
	}
	defer conn.Close()
	return s.follow(conn)
}

// visitSecurely is visit by HTTPS.
func (s *systemService) visitSecurely() error {
	conn, err := s.m.Dial("127.0.0.1:443")
	if err != nil {
		return err
	}
	defer conn.Close()
	return s.follow(tls.Client(conn, &tls.Config{ServerName: "sho.rt", RootCAs: s.roots}))
}

func (s *systemService) follow(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(2 * testkit.Patience)); err != nil {
		return err
	}
	fmt.Fprint(conn, "GET /kept HTTP/1.1\r\nHost: sho.rt\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(conn)
	if err == nil && !bytes.HasPrefix(answer, []byte("HTTP/1.1 302 ")) {
		err = fmt.Errorf("answered %.200q", answer)
	}
	return err
}

// total returns how many clicks of the link are counted.
func (s *systemService) total() (n int64, err error) {
	_, body, err := s.call(http.MethodGet, "/api/v1/stats/kept", "")
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(body, `"total_clicks":`)
	if !found {
		return 0, errors.New(body)
	}
	_, err = fmt.Sscan(strings.TrimRight(after[:strings.IndexAny(after, ",}")], " "), &n)
	return n, err
}

// click creates the link if it does not exist, follows it, waits until the click is counted, and returns the count.
func (s *systemService) click(t *testing.T) (total int64) {
	t.Helper()
	status, body, err := s.call(http.MethodPost, "/api/v1/shorten", `{"long_url": "https://example.com/", `+
		`"custom_alias": "kept"}`)
	if err != nil || status != http.StatusCreated && status != http.StatusUnprocessableEntity {
		t.Fatalf("%d %s %v", status, body, err)
	}
	before, err := s.total()
	testkit.Must(t, err)
	testkit.Must(t, s.visit())
	s.awaitTotal(t, before+1)
	return before + 1
}

func (s *systemService) awaitTotal(t *testing.T, want int64) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		n, err := s.total()
		if err == nil && n != want {
			err = fmt.Errorf("%d clicks are counted, want %d", n, want)
		}
		return err
	})
}

// repeat calls act, which must succeed, until stop is called, and counts the calls.
func repeat(t *testing.T, clients int, act func() error) (calls *atomic.Int64, stop func()) {
	calls = new(atomic.Int64)
	done := make(chan struct{})
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(5 * time.Millisecond):
				}
				if err := act(); err != nil {
					t.Error(err)
					return
				}
				calls.Add(1)
			}
		})
	}
	return calls, func() { close(done); running.Wait() }
}

// testRestarts restarts and upgrades the service while visitors come. Every visit and every request must be answered as
// if it ran all the time. A kill takes the visits under way, and no other.
func testRestarts(t *testing.T, s *systemService, upgrade, downgrade func()) {
	first := s.click(t)
	visits, stopVisits := repeat(t, 3, s.visit)
	secure, stopSecure := repeat(t, 2, s.visitSecurely)
	requests, stopRequests := repeat(t, 1, func() error {
		status, body, err := s.call(http.MethodGet, "/api/v1/links", "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})
	restart := func() { s.m.Run(t, `systemctl restart linkstream-standalone`) }
	for _, step := range []func(){restart, restart, upgrade, downgrade} {
		before, securely := visits.Load(), secure.Load()
		step()
		testkit.Eventually(t, "visits after a restart", func() bool {
			return t.Failed() || visits.Load() > before+20 && secure.Load() > securely+20
		})
	}
	stopVisits()
	stopSecure()
	stopRequests()
	total := first + visits.Load() + secure.Load()
	s.awaitTotal(t, total)
	t.Logf("%d visits, %d by HTTPS, and %d requests during 4 restarts", visits.Load(), secure.Load(), requests.Load())
	s.m.Run(t, `systemctl kill --signal=KILL linkstream-standalone`)
	testkit.Must(t, s.visit())
	testkit.Must(t, s.visitSecurely())
	s.awaitTotal(t, total+2)
}

// testStop stops the service while visitors come, who are refused then, and who do not start it.
func testStop(t *testing.T, s *systemService) {
	var refused atomic.Int64
	_, stop := repeat(t, 5, func() error {
		if err := s.visit(); errors.Is(err, syscall.ECONNREFUSED) {
			refused.Add(1)
		}
		return nil
	})
	for _, command := range []string{"stop", "disable --now"} {
		s.m.Run(t, `systemctl `+command+` linkstream-standalone`)
		before := refused.Load()
		testkit.Eventually(t, "visitors are refused", func() bool { return refused.Load() > before+100 })
		out, _ := s.m.Try(t, `systemctl is-active linkstream-standalone linkstream-standalone-edge.socket `+
			`linkstream-standalone-api.socket linkstream-standalone-edge-tls.socket`)
		testkit.Equal(t, "states after "+command, out, "inactive\ninactive\ninactive\ninactive\n")
		s.start(t)
		testkit.Must(t, s.visitSecurely())
	}
	stop()
}

// testAddresses starts an edge beside standalone. It must not get the addresses of standalone, and gets others by its
// socket unit only.
func testAddresses(t *testing.T, s *systemService) {
	out, err := s.m.Try(t, `systemctl start linkstream-edge 2>&1`)
	testkit.Equal(t, "the edge starts at the address of standalone", err == nil, false)
	log := s.m.Run(t, `journalctl --no-pager --unit linkstream-edge.socket`)
	if !strings.Contains(log, "Failed to listen on sockets") {
		// the reason comes from a process that may end before the journal knows its unit
		t.Errorf("systemctl prints\n%sthe journal has\n%s", out, log)
	}
	testkit.Must(t, s.visit())
	s.m.Run(t, `echo postgres://127.0.0.1:1/linkstream >/etc/linkstream/postgres.dsn
		echo LINKSTREAM_OPS_LISTEN=127.0.0.1:9083 >>/etc/linkstream/edge.env
		mkdir -p /etc/systemd/system/linkstream-edge.socket.d
		printf '[Socket]\nListenStream=\nListenStream=127.0.0.1:8090\n' \
			>/etc/systemd/system/linkstream-edge.socket.d/address.conf
		systemctl daemon-reload
		systemctl start linkstream-edge
		timeout 60 sh -c 'until curl --silent http://127.0.0.1:9083/readyz | grep Postgres; do sleep 0.1; done'`)
	testkit.Must(t, s.visit())
	s.m.Run(t, `echo LINKSTREAM_EDGE_LISTEN=127.0.0.1:8090 >>/etc/linkstream/edge.env
		systemctl restart linkstream-edge
		timeout 60 sh -c 'until journalctl --unit linkstream-edge | grep --quiet "LINKSTREAM_EDGE_LISTEN.*ListenStream"
			do sleep 0.1; done'
		systemctl stop linkstream-edge`)
	testkit.Eventually(t, "its socket is closed", func() bool {
		// systemd closes it after the service, which is all that stop waits for
		conn, err := s.m.Dial("127.0.0.1:8090")
		if err == nil {
			conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	s.click(t)
}

// The sandbox is written once and copied to all units: what differs would be a mistake.
func TestUnitsHaveTheSameSandbox(t *testing.T) {
	sandbox := func(name string) string {
		content, err := os.ReadFile("../../systemd/linkstream-" + name + ".service")
		testkit.Must(t, err)
		_, after, found := strings.Cut(string(content), "# The same in all units of linkstream.\n")
		settings, _, ends := strings.Cut(after, "[Install]")
		if !found || !ends || strings.Count(settings, "\n") < 20 {
			t.Fatalf("%s has no sandbox", name)
		}
		return settings
	}
	for _, name := range unitPrograms {
		testkit.Equal(t, name, sandbox(name), sandbox("standalone"))
	}
}
