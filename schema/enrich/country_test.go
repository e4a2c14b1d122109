package enrich_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/enrich/enrichtest"
	"linkstream/schema/testkit"
)

var networks = map[string]enrichtest.Record{
	"81.2.69.0/24":         enrichtest.In("GB"),
	"89.160.0.0/17":        enrichtest.In("SE"),
	"198.51.100.128/25":    enrichtest.In("FR"),
	"2001:db8:1::/48":      enrichtest.In("DE"),
	"2001:db8:2:8000::/49": enrichtest.In("FR"),
	"203.0.112.0/24":       {"registered_country": enrichtest.Record{"iso_code": mmdbtype.String("NZ")}},
	"203.0.113.0/24": {"country": enrichtest.Record{"iso_code": mmdbtype.String("AU")},
		"registered_country": enrichtest.Record{"iso_code": mmdbtype.String("NZ")}},
	"203.0.114.0/24": {"continent": enrichtest.Record{"code": mmdbtype.String("OC")}},
	"203.0.115.0/24": {"country": mmdbtype.String("US")},
	"203.0.116.0/24": enrichtest.In("usa"),
	"203.0.117.0/24": enrichtest.In("\x00\xff"),
	"203.0.118.0/24": {"country": enrichtest.Record{"iso_code": mmdbtype.Uint32(7)}},
}

// openCountries writes a file with networks to path and opens it.
func openCountries(t testing.TB) (countries *enrich.Countries, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "countries.mmdb")
	enrichtest.WriteCountries(t, path, networks)
	countries, err := enrich.OpenCountries(path, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	return countries, path
}

func country(e *enrich.Enricher, network ...byte) string {
	return e.Enrich(&schema.Click{Network: network}).Country
}

func TestCountry(t *testing.T) {
	countries, _ := openCountries(t)
	e := enrich.New(countries)
	for _, c := range []struct {
		what    string
		network []byte
		want    string
	}{
		{"a network of IPv4", []byte{81, 2, 69}, "GB"},
		{"a network within a larger one", []byte{89, 160, 77}, "SE"},
		{"a network of IPv6", []byte{0x20, 0x01, 0x0d, 0xb8, 0, 1}, "DE"},
		{"a country and a registered country", []byte{203, 0, 113}, "AU"},
		{"a registered country alone", []byte{203, 0, 112}, "NZ"},

		{"a network whose first address has no country", []byte{198, 51, 100}, ""},
		{"a network of IPv6 whose first address has no country", []byte{0x20, 0x01, 0x0d, 0xb8, 0, 2}, ""},
		{"a network that is not in the file", []byte{81, 2, 70}, ""},
		{"no network", nil, ""},
		{"a continent without a country", []byte{203, 0, 114}, ""},
		{"a country that is not a map", []byte{203, 0, 115}, ""},
		{"a code of three letters", []byte{203, 0, 116}, ""},
		{"a code that is not letters", []byte{203, 0, 117}, ""},
		{"a code that is a number", []byte{203, 0, 118}, ""},
		{"a network of another length", []byte{81, 2, 69, 0}, ""},
		{"two bytes", []byte{89, 160}, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			for range 2 { // computed, then memoized
				if got := country(e, c.network...); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
	t.Run("without a file", func(t *testing.T) {
		countries, err := enrich.OpenCountries("", slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		for _, e := range []*enrich.Enricher{enrich.New(countries), enrich.New(nil)} {
			if got := country(e, 81, 2, 69); got != "" {
				t.Errorf("got %q", got)
			}
		}
	})
}

func TestOpenCountriesRefusesUnusableFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, data, 0o600))
		return path
	}
	whole := filepath.Join(dir, "whole")
	enrichtest.WriteCountries(t, whole, networks)
	data, err := os.ReadFile(whole)
	testkit.Must(t, err)
	operators := filepath.Join(dir, "operators")
	enrichtest.WriteCountries(t, operators, map[string]enrichtest.Record{
		"81.2.69.0/24": {"autonomous_system_number": mmdbtype.Uint32(20712)}})
	for what, path := range map[string]string{
		"missing": filepath.Join(dir, "missing"), "a directory": dir, "a device": os.DevNull,
		"empty": write("empty", nil), "text": write("text", []byte("81.2.69.0/24 GB\n")),
		"truncated":             write("cut", data[:len(data)-40]),
		"without its beginning": write("tail", data[len(data)-200:]),
		"of operators":          operators,
	} {
		_, err := enrich.OpenCountries(path, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("file: %s: got error %v, want one with its path", what, err)
		}
	}
}

func TestRunLoadsCountriesWhenTheFileChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	put := func(code string) {
		enrichtest.WriteCountries(t, path, map[string]enrichtest.Record{"81.2.69.0/24": enrichtest.In(code)})
	}
	put("GB")
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		countries, err := enrich.OpenCountries(path, slog.New(slog.NewTextHandler(&logged, nil)))
		testkit.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); countries.Run(ctx) }()
		e := enrich.New(countries)
		check := func(when, want string) {
			t.Helper()
			time.Sleep(6 * time.Second) // synthetic time, in which Run checks the file
			synctest.Wait()
			if got := country(e, 81, 2, 69); got != want {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
		}
		check("before a change", "GB")
		put("SE")
		check("after the file is replaced", "SE")
		testkit.Must(t, os.WriteFile(path, []byte("incomplete"), 0o600))
		check("while the file is broken", "SE")
		check("while the file is still broken", "SE")
		testkit.Must(t, os.Remove(path))
		check("while the file is missing", "SE")
		put("NZ")
		check("after the file is there again", "NZ")
		testkit.Must(t, os.WriteFile(path, nil, 0o600))
		check("after the file is truncated", "NZ")
		if n := strings.Count(logged.String(), "level=ERROR"); n != 3 {
			t.Errorf("logged %d errors, want one per failed state, 3:\n%s", n, &logged)
		}
		cancel()
		<-done
	})
}

// The race detector checks the swap of the database. Run checks the file while the enrichers look up.
func TestEnrichersMayRunWhileCountriesReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	put := func(n int) {
		enrichtest.WriteCountries(t, path, map[string]enrichtest.Record{
			"81.2.69.0/24": enrichtest.In([]string{"GB", "SE"}[n%2]), fmt.Sprintf("10.%d.0.0/16", n): enrichtest.In("FR")})
	}
	put(0)
	synctest.Test(t, func(t *testing.T) {
		countries, err := enrich.OpenCountries(path, slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { countries.Run(ctx) })
		for range 2 {
			wg.Go(func() {
				for e, changes, last := enrich.New(countries), 0, "GB"; ; {
					got := country(e, 81, 2, 69)
					if got != "GB" && got != "SE" {
						t.Errorf("got %q", got)
						return
					}
					if got != last {
						changes, last = changes+1, got
					}
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
						testkit.Equal(t, "changes", changes, 20)
						return
					}
				}
			})
		}
		for n := range 20 {
			put(n + 1)
			time.Sleep(10 * time.Second)
		}
		cancel()
		wg.Wait()
	})
}
