//go:build deploy

package outside_test

import (
	"crypto/x509"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"linkstream/api/customdomain/dnstest"
	"linkstream/schema/testkit"
)

// eabKey is the secret of the external account that the authority requires.
const eabKey = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"

// authority is pebble and what leads to it and from it.
type authority struct {
	plain, tls *forwarder // from pebble to port 80 and 443 of the hosts
	names      *dnstest.Server
	issuers    *x509.CertPool // of the certificates that it issues
	roots      string         // file of the authority of its own HTTPS
	directory  string
	eabID      string
}

func startAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{plain: forward(t), tls: forward(t), names: dnstest.Start(t), eabID: "kid-1"}
	running := startPebble(t, pebbleConfig{HTTPPort: a.plain.port(), TLSPort: a.tls.port(), Resolver: a.names.Addr(),
		Accounts: map[string]string{a.eabID: eabKey}})
	a.issuers, a.roots = running.Issuers, running.Roots
	a.directory = "https://localhost" + running.Addr[strings.LastIndex(running.Addr, ":"):] + "/dir"
	return a
}

// host makes names of hosts lead to the edges.
func (a *authority) host(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		a.names.Add(t, name+". A 127.0.0.1")
	}
}

// flags are those of a program that uses the authority.
func (a *authority) flags() []string {
	return []string{"-edge.acme-email=operator@example.org", "-edge.acme-directory=" + a.directory,
		"-edge.acme-roots=" + a.roots, "-edge.acme-key=0123456789abcdef0123456789abcdef", "-edge.acme-eab-id=" + a.eabID,
		"-edge.acme-eab-key=" + eabKey}
}

// forwarder forwards connections to addresses, one after the other.
type forwarder struct {
	listener net.Listener
	accepted atomic.Int64

	mu      sync.Mutex
	targets []string
	next    int
	held    chan struct{} // if not nil, connections wait until it is closed
}

func forward(t *testing.T) *forwarder {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	f := &forwarder{listener: ln}
	relay(t, ln, f.dial)
	t.Cleanup(f.release)
	return f
}

func (f *forwarder) port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// to sets the addresses.
func (f *forwarder) to(targets ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.targets = targets
}

// hold makes connections wait until release is called, or the test ends.
func (f *forwarder) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = make(chan struct{})
}

func (f *forwarder) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held != nil {
		close(f.held)
		f.held = nil
	}
}

// dial connects to the next address.
func (f *forwarder) dial() (net.Conn, error) {
	f.accepted.Add(1)
	f.mu.Lock()
	held := f.held
	f.mu.Unlock()
	if held != nil {
		<-held
	}
	f.mu.Lock()
	f.next++
	target := f.targets[f.next%len(f.targets)]
	f.mu.Unlock()
	return net.Dial("tcp", target)
}
