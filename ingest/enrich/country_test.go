package enrich_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"linkstream/ingest/enrich"
	"linkstream/ingest/enrich/enrichtest"
	"linkstream/schema"
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

func must(t testing.TB, err error) {
	t.Helper()
	testkit.Must(t, err)
}

// openCountries opens a file with networks, which path replaces.
func openCountries(t testing.TB) (countries *enrich.Countries, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "countries.mmdb")
	enrichtest.WriteCountries(t, path, networks)
	countries, err := enrich.OpenCountries(path, slog.New(slog.DiscardHandler))
	must(t, err)
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
		{"a part of a larger one", []byte{89, 160, 77}, "SE"},
		{"a network of IPv6", []byte{0x20, 0x01, 0x0d, 0xb8, 0, 1}, "DE"},
		{"a country, not that of the network's owner", []byte{203, 0, 113}, "AU"},
		{"no country but that of the network's owner", []byte{203, 0, 112}, "NZ"},

		{"a network whose first address is in none", []byte{198, 51, 100}, ""},
		{"a network of IPv6 whose first address is in none", []byte{0x20, 0x01, 0x0d, 0xb8, 0, 2}, ""},
		{"a network that the file does not have", []byte{81, 2, 70}, ""},
		{"no network", nil, ""},
		{"a continent", []byte{203, 0, 114}, ""},
		{"a country of another form", []byte{203, 0, 115}, ""},
		{"a code of three letters", []byte{203, 0, 116}, ""},
		{"a code that is no letters", []byte{203, 0, 117}, ""},
		{"a code that is a number", []byte{203, 0, 118}, ""},
		{"a network of another length", []byte{81, 2, 69, 0}, ""},
		{"two bytes", []byte{89, 160}, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			for range 2 { // not remembered, and remembered
				if got := country(e, c.network...); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
	t.Run("without a file", func(t *testing.T) {
		countries, err := enrich.OpenCountries("", slog.New(slog.DiscardHandler))
		must(t, err)
		for _, e := range []*enrich.Enricher{enrich.New(countries), enrich.New(nil)} {
			if got := country(e, 81, 2, 69); got != "" {
				t.Errorf("got %q", got)
			}
		}
	})
}

func TestOpenCountriesReportsAFileThatIsOfNoUse(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, data, 0o600))
		return path
	}
	whole := filepath.Join(dir, "whole")
	enrichtest.WriteCountries(t, whole, networks)
	data, err := os.ReadFile(whole)
	must(t, err)
	providers := filepath.Join(dir, "providers")
	enrichtest.WriteCountries(t, providers, map[string]enrichtest.Record{
		"81.2.69.0/24": {"autonomous_system_number": mmdbtype.Uint32(20712)}})
	for what, path := range map[string]string{
		"is missing": filepath.Join(dir, "missing"), "is a directory": dir, "is no regular file": os.DevNull,
		"is empty": write("empty", nil), "is something else": write("text", []byte("81.2.69.0/24 GB\n")),
		"is cut at its end":       write("cut", data[:len(data)-40]),
		"is cut at its beginning": write("tail", data[len(data)-200:]),
		"knows no countries":      providers,
	} {
		_, err := enrich.OpenCountries(path, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("a file that %s: %v", what, err)
		}
	}
}

func TestCountriesFollowTheirFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	put := func(code string) {
		enrichtest.WriteCountries(t, path, map[string]enrichtest.Record{"81.2.69.0/24": enrichtest.In(code)})
	}
	put("GB")
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		countries, err := enrich.OpenCountries(path, slog.New(slog.NewTextHandler(&logged, nil)))
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); countries.Run(ctx) }()
		e := enrich.New(countries)
		check := func(when, want string) {
			t.Helper()
			time.Sleep(6 * time.Second) // of the bubble: the file is looked at meanwhile
			synctest.Wait()
			if got := country(e, 81, 2, 69); got != want {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
		}
		check("at first", "GB")
		put("SE")
		check("when the file was replaced", "SE")
		must(t, os.WriteFile(path, []byte("not yet all of it"), 0o600))
		check("while the file is broken", "SE")
		check("while the file is still broken", "SE")
		must(t, os.Remove(path))
		check("while the file is missing", "SE")
		put("NZ")
		check("when there is another file", "NZ")
		must(t, os.WriteFile(path, nil, 0o600))
		check("when the file was emptied in its place", "NZ")
		if n := strings.Count(logged.String(), "level=ERROR"); n != 3 {
			t.Errorf("logged %d errors, want one for each of three states:\n%s", n, &logged)
		}
		cancel()
		<-done
	})
}

// TestEnrichersUseCountriesWhileTheyChange is for the race detector.
func TestEnrichersUseCountriesWhileTheyChange(t *testing.T) {
	countries, path := openCountries(t)
	const rounds = 20
	stop := make(chan struct{})
	seen := make(chan error)
	for range 2 {
		go func() {
			e := enrich.New(countries)
			for n := 0; ; n++ {
				select {
				case <-stop:
					seen <- nil
					return
				default:
				}
				if got := country(e, 81, 2, 69); got != "GB" && got != "SE" {
					seen <- fmt.Errorf("got %q", got)
					return
				}
			}
		}()
	}
	for n := range rounds {
		enrichtest.WriteCountries(t, path, map[string]enrichtest.Record{
			"81.2.69.0/24": enrichtest.In([]string{"GB", "SE"}[n%2]), fmt.Sprintf("10.%d.0.0/16", n): enrichtest.In("FR")})
		must(t, enrich.Reload(countries))
	}
	close(stop)
	for range 2 {
		must(t, <-seen)
	}
}
