package systemd_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/deploy/testmachine"
	"linkstream/schema/testkit"
)

const token = "ls_systemd0systemd0systemd0systemd0systemd0systemd0"

// unit holds the settings of a unit file in their order.
type unit map[string][]string

// readUnit reads a unit file of this folder.
func readUnit(t *testing.T, name string) unit {
	t.Helper()
	file, err := os.Open(name)
	testkit.Must(t, err)
	defer file.Close()
	u := unit{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok && !strings.HasPrefix(name, "#") {
			u[name] = append(u[name], value)
		}
	}
	return u
}

// running is a service that runs in a copy of this machine as its unit says, and the parent of it that systemd is: it holds the
// sockets of the unit while the service restarts.
type running struct {
	m       *testmachine.Machine
	unit    unit
	sockets []*os.File
	names   []string          // of sockets
	addrs   map[string]string // of sockets, by name
	ops     string
	wrapper []string       // of the program's command
	more    []string       // environment, as of a file in /etc/linkstream
	roots   *x509.CertPool // of its certificate
	cmd     *exec.Cmd
	log     testkit.Buffer
}

// start opens the sockets and starts the service of a program. It returns when the service is ready.
func start(t *testing.T, m *testmachine.Machine, program string, wrapper ...string) *running {
	t.Helper()
	s := &running{m: m, unit: readUnit(t, "linkstream-"+program+".service"), addrs: map[string]string{}, wrapper: wrapper}
	s.open(t, program, strings.Fields(strings.Join(s.unit["Sockets"], " ")))
	s.launch(t)
	return s
}

// startSecure is start with the socket for HTTPS, which the operator enables, and certificates in files that the user of the service
// can read. systemd passes it because it names the service.
func startSecure(t *testing.T, m *testmachine.Machine, program string) *running {
	t.Helper()
	m.Run(t, `install -d -o root -g linkstream -m 750 /etc/linkstream/tls; install -o root -g linkstream -m 640 /packages/tls.* /etc/linkstream/tls`)
	s := &running{m: m, unit: readUnit(t, "linkstream-"+program+".service"), addrs: map[string]string{},
		more: []string{"LINKSTREAM_EDGE_TLS_CERT=/etc/linkstream/tls/tls.crt", "LINKSTREAM_EDGE_TLS_KEY=/etc/linkstream/tls/tls.key"}}
	secure := "linkstream-" + program + "-edge-tls.socket"
	testkit.Equal(t, "service of "+secure, strings.Join(readUnit(t, secure)["Service"], " "), "linkstream-"+program+".service")
	s.open(t, program, append(strings.Fields(strings.Join(s.unit["Sockets"], " ")), secure))
	s.launch(t)
	return s
}

// open opens the sockets of units.
func (s *running) open(t *testing.T, program string, units []string) {
	t.Helper()
	for _, name := range units {
		socket := readUnit(t, name)
		ln, err := net.Listen("tcp", "127.0.0.1:0") // its own port may be taken on this machine
		testkit.Must(t, err)
		file, err := ln.(*net.TCPListener).File()
		testkit.Must(t, err)
		t.Cleanup(func() { file.Close() })
		s.sockets, s.names = append(s.sockets, file), append(s.names, socket["FileDescriptorName"][0])
		s.addrs[socket["FileDescriptorName"][0]] = ln.Addr().String()
		ln.Close()
	}
	s.ops = testkit.FreeAddress(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of %s:\n%s", program, s.log.String())
		}
	})
}

// launch starts the program of the unit as its user, with its environment.
func (s *running) launch(t *testing.T) {
	t.Helper()
	user := s.unit["User"][0]
	environment := append(slices.Clone(s.unit["Environment"]), "PATH=/usr/bin:/bin", "LISTEN_FDS="+fmt.Sprint(len(s.sockets)),
		"LISTEN_FDNAMES="+strings.Join(s.names, ":"), "LINKSTREAM_OPS_LISTEN="+s.ops, "LINKSTREAM_EDGE_URL=http://"+s.addrs["edge"],
		"LINKSTREAM_BOOTSTRAP_TOKEN="+token)
	environment = append(environment, s.more...)
	for i, variable := range environment {
		environment[i] = strings.ReplaceAll(variable, "%S", "/var/lib")
	}
	program := strings.Fields(strings.ReplaceAll(s.unit["ExecStart"][0], "-bootstrap.email=", "-bootstrap.email=owner@example.com"))
	asManager := `umask 0077; cd /; ulimit -n ` + s.unit["LimitNOFILE"][0] + ` || echo "this machine has fewer files"; echo $$ >/run/main.pid; export LISTEN_PID=$$; exec "$@"`
	command := slices.Concat([]string{"env", "-i"}, environment, s.wrapper, []string{"sh", "-ec", asManager, "service", "setpriv",
		"--reuid", user, "--regid", user, "--init-groups", "--no-new-privs", "--bounding-set=-all"}, program)
	s.cmd = s.m.Command(t, command...)
	s.cmd.ExtraFiles, s.cmd.Stdout, s.cmd.Stderr = s.sockets, &s.log, &s.log
	testkit.Must(t, s.cmd.Start())
	testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
		_, err := s.m.Try(t, `LINKSTREAM_OPS_LISTEN=$1 LINKSTREAM_EDGE_URL=http://127.0.0.1 exec "$2" health ready`, s.ops, program[0])
		return err
	})
}

// stop ends the service as systemd does and requires exit code 0.
func (s *running) stop(t *testing.T) {
	t.Helper()
	s.m.Run(t, `kill -TERM $(cat /run/main.pid)`)
	if err := s.cmd.Wait(); err != nil {
		t.Fatalf("stop: %v\n%s", err, s.log.String())
	}
}

// call sends a request to the API.
func (s *running) call(method, path, body string) (status int, answer string, err error) {
	req, err := http.NewRequest(method, "http://"+s.addrs["api"]+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// visit follows the link on a connection of its own.
func (s *running) visit() error {
	conn, err := net.DialTimeout("tcp", s.addrs["edge"], testkit.Patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	return s.follow(conn)
}

// visitSecurely is visit by HTTPS.
func (s *running) visitSecurely() error {
	conn, err := net.DialTimeout("tcp", s.addrs["edge-tls"], testkit.Patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	return s.follow(tls.Client(conn, &tls.Config{ServerName: "sho.rt", RootCAs: s.roots}))
}

func (s *running) follow(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(2 * testkit.Patience)); err != nil {
		return err
	}
	fmt.Fprintf(conn, "GET /kept HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", s.addrs["edge"])
	answer, err := io.ReadAll(conn)
	if err == nil && !bytes.HasPrefix(answer, []byte("HTTP/1.1 302 ")) {
		err = fmt.Errorf("answered %.200q", answer)
	}
	return err
}

// total returns how many clicks of the link are counted.
func (s *running) total() (n int64, err error) {
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

// click creates the link if it does not exist, follows it and waits until the click is counted.
func (s *running) click(t *testing.T) {
	t.Helper()
	status, body, err := s.call(http.MethodPost, "/api/v1/shorten", `{"long_url": "https://example.com/", "custom_alias": "kept"}`)
	if err != nil || status != http.StatusCreated && status != http.StatusUnprocessableEntity {
		t.Fatalf("%d %s %v", status, body, err)
	}
	before, err := s.total()
	testkit.Must(t, err)
	testkit.Must(t, s.visit())
	s.awaitTotal(t, before+1)
}

func (s *running) awaitTotal(t *testing.T, want int64) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		n, err := s.total()
		if err == nil && n != want {
			err = fmt.Errorf("%d clicks are counted, want %d", n, want)
		}
		return err
	})
}

// testRestarts restarts a service while visitors come. Every visit and every request must be answered as if it ran all the time.
func testRestarts(t *testing.T, m *testmachine.Machine, roots *x509.CertPool) {
	s := startSecure(t, m, "standalone")
	s.roots = roots
	s.click(t)
	first, err := s.total()
	testkit.Must(t, err)
	var visits, secure, requests atomic.Int64
	done := make(chan struct{})
	var clients sync.WaitGroup
	client := func(counter *atomic.Int64, act func() error) {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(2 * time.Millisecond):
				}
				if err := act(); err != nil {
					t.Errorf("during a restart: %v", err)
					return
				}
				counter.Add(1)
			}
		})
	}
	for range 5 {
		client(&visits, s.visit)
		client(&secure, s.visitSecurely)
	}
	client(&requests, func() error {
		defer http.DefaultClient.CloseIdleConnections()
		status, body, err := s.call(http.MethodGet, "/api/v1/links", "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})
	for i := range 5 {
		s.stop(t)
		before, securely := visits.Load(), secure.Load()
		s.launch(t)
		testkit.Eventually(t, fmt.Sprintf("visits after restart %d", i), func() bool { return visits.Load() > before+20 && secure.Load() > securely+20 })
	}
	close(done)
	clients.Wait()
	s.awaitTotal(t, first+visits.Load()+secure.Load())
	t.Logf("%d visits, %d by HTTPS, and %d requests during 5 restarts", visits.Load(), secure.Load(), requests.Load())
	s.stop(t)
}

// testSystemCalls requires that the filter of the units has every system call that the program makes while it starts, serves and
// stops.
func testSystemCalls(t *testing.T, m *testmachine.Machine) {
	s := start(t, m, "standalone", "strace", "--follow-forks", "--quiet=all", "--summary-only", "--output=/run/calls")
	s.click(t)
	s.stop(t)
	calls := m.Run(t, `awk 'NR > 2 && $1 ~ /^[0-9]/ { print $NF }' /run/calls`)
	allowed := systemCalls(t, m, "@system-service")
	for _, filter := range s.unit["SystemCallFilter"] {
		if excluded, ok := strings.CutPrefix(filter, "~"); ok {
			for _, group := range strings.Fields(excluded) {
				for name := range systemCalls(t, m, group) {
					delete(allowed, name)
				}
			}
		}
	}
	// What sh and setpriv do before the program starts.
	for _, name := range []string{"setuid", "setgid", "setresuid", "setresgid", "setgroups", "capset", "total"} {
		allowed[name] = true
	}
	made := strings.Fields(calls)
	for _, name := range made {
		if !allowed[name] {
			t.Errorf("the units do not allow %s", name)
		}
	}
	if len(made) < 20 || !slices.Contains(made, "futex") || allowed["mount"] || !allowed["read"] {
		t.Errorf("made: %q", made)
	}
}

// systemCalls returns the names of a group of systemd.
func systemCalls(t *testing.T, m *testmachine.Machine, group string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, name := range strings.Fields(m.Run(t, `systemd-analyze syscall-filter --no-pager "$1" | grep -v '^ *#' | tail -n +2`, group)) {
		if !strings.HasPrefix(name, "@") {
			names[name] = true
			continue
		}
		for inner := range systemCalls(t, m, name) {
			names[inner] = true
		}
	}
	return names
}

// The sandbox is written once and copied to all units: what differs would be a mistake.
func TestUnitsHaveTheSameSandbox(t *testing.T) {
	sandbox := func(name string) string {
		content, err := os.ReadFile("linkstream-" + name + ".service")
		testkit.Must(t, err)
		_, after, found := strings.Cut(string(content), "# The same in all units of linkstream.\n")
		settings, _, ends := strings.Cut(after, "[Install]")
		if !found || !ends || strings.Count(settings, "\n") < 20 {
			t.Fatalf("%s has no sandbox", name)
		}
		return settings
	}
	for _, name := range programs {
		testkit.Equal(t, name, sandbox(name), sandbox("standalone"))
	}
}
