//go:build linux

package manual_test

import (
	"context"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/api/customdomain/dnstest"
	"linkstream/deploy/acme/pebble"
	"linkstream/deploy/testmachine"
	"linkstream/schema/testkit"
)

// What stands around the manual's story: an authority for HTTPS, load during an upgrade, and alerts that fire within seconds.

// prepareHTTPS starts an authority that finds the edge of standalone under the hosts of the manual, and lets the copy's curl and, once the
// manual is there, standalone trust it.
func prepareHTTPS(t *testing.T, m *testmachine.Machine, p ports) {
	t.Helper()
	port := func(name string) int {
		n, err := strconv.Atoi(p[name])
		testkit.Must(t, err)
		return n
	}
	names := dnstest.Start(t)
	hosts := []string{"sho.rt", "go.example.com"}
	curl := "cacert = /etc/issuers.pem\n"
	for _, host := range hosts {
		names.Add(t, host+". A 127.0.0.1")
		curl += "connect-to = " + host + ":443:127.0.0.1:" + p["443"] + "\n"
	}
	authority := pebble.Start(t, pebble.Config{HTTPPort: port("8080"), TLSPort: port("443"), Resolver: names.Addr(), Valid: 24 * time.Hour})
	roots, err := os.ReadFile(authority.Roots)
	testkit.Must(t, err)
	u := url.URL{Scheme: "https", Host: "localhost" + authority.Addr[strings.LastIndex(authority.Addr, ":"):], Path: "/dir"}
	settings := "\nLINKSTREAM_EDGE_ACME_DIRECTORY=" + u.String() + "\nLINKSTREAM_EDGE_ACME_ROOTS=/etc/roots.pem\n" + p.settings("EDGE_TLS=443")
	for path, content := range map[string]string{"/etc/issuers.pem": string(authority.IssuersPEM), "/etc/roots.pem": string(roots),
		"/root/.curlrc": curl, "/etc/stand-in/https": settings} {
		m.Run(t, `printf '%s' "$2" >"$1"; chmod 644 "$1"`, path, content)
	}
}

// load visits a link until there is a file /tmp/enough, and counts the answers. Beside it the package is upgraded.
const load = `total() {
	curl --silent --fail http://127.0.0.1:8081/api/v1/stats/go-doc -H "Authorization: Bearer $TOKEN" | grep --only-matching '"total_clicks":[0-9]*' | cut -d: -f2
}
BEFORE=$(total)
rm -f /tmp/enough
{
	answered=0
	while [ ! -e /tmp/enough ]; do
		status=$(curl --silent --max-time 20 --output /dev/null --write-out '%{http_code}' -H 'Host: sho.rt' http://127.0.0.1:8080/go-doc || true)
		[ "$status" != 302 ] || answered=$((answered + 1))
		sleep 0.02
	done
	echo $answered >/tmp/answered
} &
LOAD=$!
`

// equalTotals requires that each answered visit is counted once.
const equalTotals = `touch /tmp/enough
wait $LOAD
ANSWERED=$(cat /tmp/answered)
[ "$ANSWERED" -gt 50 ]
for i in $(seq 60); do
	[ "$(total)" != $((BEFORE + ANSWERED)) ] || break
	sleep 0.5
done
echo "$ANSWERED visits were answered, $(($(total) - BEFORE)) are counted"
[ "$(total)" = $((BEFORE + ANSWERED)) ]
grep --quiet 'msg=stopped' /var/log/stand-in/linkstream-standalone.log
`

// hasten lets the alerts in a file fire within seconds.
func hasten(t *testing.T, path string) {
	t.Helper()
	rules, err := os.ReadFile(path)
	testkit.Must(t, err)
	rules = regexp.MustCompile(`\[\d+m\]`).ReplaceAll(rules, []byte("[20s]"))
	rules = regexp.MustCompile(`(?m)for: \d+m$`).ReplaceAll(rules, []byte("for: 3s"))
	testkit.Must(t, os.WriteFile(path, rules, 0o600))
}

// obey stops and starts Kafka when the stand-in of systemctl asks for it, until the test ends.
func (e *engineNames) obey(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			asked, err := os.ReadFile(path)
			if err != nil || len(asked) == 0 {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			switch strings.TrimSpace(string(asked)) {
			case "stop":
				err = e.broker.Stop()
			case "start":
				err = e.broker.Start(ctx)
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
