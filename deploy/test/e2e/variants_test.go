package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestVariants has many visitors of a link with variants.
func TestVariants(t *testing.T) {
	t.Parallel()
	const proxies = "LINKSTREAM_EDGE_TRUSTED_PROXIES=127.0.0.0/8"
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s := startSystem(t, proxies, longCaches)
		testVariants(t, s, s.programs[0], s.edge)
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		s := newServices(t, sharedEngines(t), proxies, longCaches)
		s.start(t)
		other, base := s.startAnother(t, "edge")
		testVariants(t, s, other, s.edge, base)
	})
}

// testVariants kills and restarts the program killed, one of the edges.
func testVariants(t *testing.T, s *system, killed *program, edges ...string) {
	const visitors = 100_000
	owner, weights := s.owner(), map[string]int{"a": 50, "b": 30, "c": 20}
	var variants []object
	for _, name := range []string{"a", "b", "c"} {
		variants = append(variants, object{"name": name, "url": "https://example.com/" + name, "weight": weights[name]})
	}
	owner.Shorten(t, object{"long_url": "https://example.com/", "custom_alias": "shares", "variants": variants}).Want(t, http.StatusCreated)
	chosen, counts := make([]string, visitors), map[string]int64{}
	for i, edge := range edges {
		for n, name := range s.variants(t, edge, i, visitors, len(edges)) {
			chosen[n] = name
			counts[name]++
		}
	}
	t.Run("shares follow the weights", func(t *testing.T) {
		chi := 0.0
		for name, weight := range weights {
			expected := float64(visitors * weight / 100)
			chi += (float64(counts[name]) - expected) * (float64(counts[name]) - expected) / expected
		}
		if chi > 27.6 { // p = 10^-6 with two degrees of freedom, since each run has another link
			t.Errorf("χ² = %.1f of %v", chi, counts)
		}
	})
	t.Run("routes of a report add up to the clicks", func(t *testing.T) {
		owner.WaitTotal(t, "shares", visitors)
		report := owner.Get(t, "/api/v1/links/shares/report").Want(t, http.StatusOK).Body
		testkit.Equal(t, "routes", reportNames(t, report, "routes"), counts)
	})
	t.Run("a visitor keeps the variant on every edge, and after kill -9", func(t *testing.T) {
		killed.kill(t)
		killed.start(t)
		for _, edge := range edges {
			for n, name := range s.variants(t, edge, 7, visitors, 50) {
				if name != chosen[n] {
					t.Fatalf("visitor %d has %q at %s, and had %q", n, name, edge, chosen[n])
				}
			}
		}
	})
}

// variants returns which variant each of some visitors gets of an edge, on one connection.
func (s *system) variants(t *testing.T, edge string, first, end, step int) map[int]string {
	t.Helper()
	conn, err := net.Dial("tcp", address(edge))
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	var visitors []int
	for n := first; n < end; n += step {
		visitors = append(visitors, n)
	}
	chosen, reader := map[int]string{}, bufio.NewReader(conn)
	for some := range slices.Chunk(visitors, 100) { // as many are answered at once
		var requests strings.Builder
		for _, n := range some {
			fmt.Fprintf(&requests, "GET /shares HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nX-Forwarded-For: 10.%d.%d.%d\r\n\r\n",
				address(s.edge), desktop, n>>16, n>>8&255, n&255)
		}
		_, err := io.WriteString(conn, requests.String())
		testkit.Must(t, err)
		for _, n := range some {
			response, err := http.ReadResponse(reader, nil)
			testkit.Must(t, err)
			chosen[n] = strings.TrimPrefix(response.Header.Get("Location"), "https://example.com/")
		}
	}
	return chosen
}
