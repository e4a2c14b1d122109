//go:build linux && deploy

package outside_test

import (
	"context"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/api/customdomain/dnstest"
	"linkstream/schema/testkit"
)

// What stands around the manual's story: an authority for HTTPS, visitors, and alerts that fire within seconds.

// prepareHTTPS starts an authority that finds the edge of the copy under the hosts of the manual, and lets the copy's
// curl and, with the settings in /etc/https.env, standalone trust it.
func prepareHTTPS(t *testing.T, m *machine) {
	t.Helper()
	names := dnstest.Start(t)
	for _, host := range []string{"sho.rt", "go.example.com"} {
		names.Add(t, host+". A 127.0.0.1")
	}
	authority := startPebble(t, pebbleConfig{HTTPPort: m.RelayOut(t, "127.0.0.1:80"),
		TLSPort: m.RelayOut(t, "127.0.0.1:443"), Resolver: names.Addr()})
	m.RelayIn(t, authority.Addr, authority.Addr)
	roots, err := os.ReadFile(authority.Roots)
	testkit.Must(t, err)
	u := url.URL{Scheme: "https", Host: "localhost" + authority.Addr[strings.LastIndex(authority.Addr, ":"):],
		Path: "/dir"}
	settings := "\nLINKSTREAM_EDGE_ACME_DIRECTORY=" + u.String() + "\nLINKSTREAM_EDGE_ACME_ROOTS=/etc/roots.pem\n"
	for path, content := range map[string]string{"/etc/issuers.pem": string(authority.IssuersPEM),
		"/etc/roots.pem": string(roots),
		"/root/.curlrc":  "cacert = /etc/issuers.pem\n", "/etc/https.env": settings} {
		write(t, m, path, "644", content)
	}
}

// visitors has functions for the commands. visit_always lets visitors come until there is a file /tmp/end, to the port
// in /tmp/port, and keeps the status of each answer with the phase. Between "begin PHASE" and "counted PHASE" each
// visit must be redirected, and counted once.
const visitors = `
echo 8080 >/tmp/port
echo story >/tmp/phase
visit_always() {
	for visitor in 1 2 3; do
		(
			while [ ! -e /tmp/end ]; do
				if [ -e /tmp/pause ]; then
					touch /tmp/paused.$visitor
					sleep 0.1
					continue
				fi
				status=$(curl --silent --max-time 30 --output /dev/null --write-out '%{http_code}' -H 'Host: sho.rt' \
					"http://127.0.0.1:$(cat /tmp/port)/go-doc" || true)
				echo "$(cat /tmp/phase) $status" >>/tmp/visits
				sleep 0.05
			done
		) </dev/null >/dev/null 2>&1 &
	done
}
total() {
	curl --silent --fail http://127.0.0.1:8081/api/v1/stats/go-doc -H "Authorization: Bearer $TOKEN" |
		grep --only-matching '"total_clicks":[0-9]*' | cut -d: -f2
}
pause() {
	touch /tmp/pause
	for visitor in 1 2 3; do
		timeout 60 sh -c "until [ -e /tmp/paused.$visitor ]; do sleep 0.1; done"
	done
}
begin() {
	pause
	sleep 3 # the last click is counted
	BEFORE=$(total)
	echo $1 >/tmp/phase
	rm /tmp/pause /tmp/paused.*
}
counted() {
	timeout 60 sh -c "until [ \$(grep -c '^$1 302' /tmp/visits) -gt 50 ]; do sleep 0.1; done"
	pause
	! grep "^$1 " /tmp/visits | grep -v ' 302$' | sort | uniq -c | grep .
	local answered=$(grep -c "^$1 302" /tmp/visits)
	for i in $(seq 120); do
		[ "$(total)" != $((BEFORE + answered)) ] || break
		sleep 0.5
	done
	echo "$answered visits were answered, $(($(total) - BEFORE)) are counted"
	[ "$(total)" = $((BEFORE + answered)) ]
	echo story >/tmp/phase
	rm /tmp/pause /tmp/paused.*
}
`

// hastenFile lets the alerts in a file fire within seconds.
func hastenFile(t *testing.T, path string) {
	t.Helper()
	rules, err := os.ReadFile(path)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(path, hasten(t, rules), 0o600))
}

// obey stops and starts Kafka when its unit in the copy asks for it, until the test ends.
func (e *engineNames) obey(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		look := time.NewTicker(50 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			asked, err := os.ReadFile(path)
			if err != nil || len(asked) == 0 {
				continue
			}
			switch strings.TrimSpace(string(asked)) {
			case "stop":
				err = e.lent.Kafka.Stop()
			case "start":
				err = e.lent.Kafka.Start(ctx)
			default:
				t.Errorf("Kafka is asked to %q", asked)
			}
			if err != nil {
				t.Error(err)
			}
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}
