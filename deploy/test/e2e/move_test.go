package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestMove moves 2,000 links of another service here, with their clicks and their domain.
func TestMove(t *testing.T) {
	t.Parallel()
	const links, host = 2000, "go.moved.example"
	s := startSystem(t, trusted)
	mover, email := s.another(t, "mover")
	s.domain(t, email, host)
	alias := func(i int) string { return []string{"Poster-%d", "fair/Hall.%d", "%d.html", "%d~a"}[i%4] }
	name := func(i int) string { return fmt.Sprintf(alias(i), i) }
	var file strings.Builder
	file.WriteString("Original URL,Short URL,Path,Title,Tags,Clicks,Created At\n")
	sum := 0
	for i := range links {
		sum += i
		fmt.Fprintf(&file, "https://example.com/%d,https://%s/%s,%s,Link %d,fair,%d,2021-03-%02dT05:06:07.000Z\n", i, host,
			name(i), name(i), i, i, 1+i%28)
	}
	path := filepath.Join(t.TempDir(), "links.csv")
	writeFile(t, path, file.String())
	wantPrinted := func(printed, want string) {
		t.Helper()
		if !strings.HasSuffix(printed, want) {
			t.Fatalf("printed\n%s\nwant %s", printed, want)
		}
	}
	wantPrinted(s.admin(t, "import", email, path, "--dry-run"), fmt.Sprintf(
		"format shortio: rows %d, would be created %d, already there 0, failed 0, imported clicks %d", links, links, sum))
	for _, want := range []string{"created 2000, already there 0", "created 0, already there 2000"} {
		wantPrinted(s.admin(t, "import", email, path), fmt.Sprintf(
			"format shortio: rows %d, %s, failed 0, imported clicks %d", links, want, sum))
	}
	visits := map[int]int64{}
	follow := func(i int, spelled string) error {
		a := s.visit(t, http.MethodGet, "/"+spelled, "Host", host, "User-Agent", desktop)
		want := fmt.Sprintf("https://example.com/%d", i)
		if a.Status != http.StatusFound || a.Header.Get("Location") != want {
			return fmt.Errorf("%s is not %s: %v", spelled, want, a)
		}
		visits[i]++
		return nil
	}
	testkit.Succeeds(t, func() error { return follow(0, name(0)) }) // edges hear of the domain
	for i := range links {
		testkit.Must(t, follow(i, name(i)))
	}
	for i := 100; i < 120; i++ {
		encoded := fmt.Sprintf("%%%02X", name(i)[0]) + name(i)[1:]
		for _, spelled := range []string{encoded, name(i) + "/", name(i) + ".", name(i) + "&utm_source=mail",
			name(i) + "?utm_source=mail"} {
			testkit.Must(t, follow(i, spelled))
		}
	}
	for i := range links {
		if i%400 == 0 || i == 101 || i == 102 {
			mover.WaitTotal(t, url.PathEscape(name(i)), int64(i)+visits[i])
		}
	}
	type report struct {
		Totals struct{ Clicks, People, Bots, Imported int64 }
	}
	all := int64(0)
	for _, n := range visits {
		all += n
	}
	read := func(from, to string) (r report) {
		t.Helper()
		a := mover.Call(t, http.MethodGet, "/api/v1/report?from="+from+"&to="+to, "").Want(t, http.StatusOK)
		testkit.Must(t, json.Unmarshal([]byte(a.Raw), &r))
		return r
	}
	testkit.Succeeds(t, func() error {
		if got := read("2021-03-01", "2021-03-28").Totals; got.Imported != int64(sum) || got.Clicks != int64(sum) {
			return fmt.Errorf("the month of the old clicks has %+v, want %d", got, sum)
		}
		now := time.Now().UTC()
		got := read(now.AddDate(0, 0, -1).Format(time.DateOnly), now.Format(time.DateOnly)).Totals
		if got.People+got.Bots != all || got.Imported != 0 || got.Clicks != all {
			return fmt.Errorf("today has %+v, want %d", got, all)
		}
		return nil
	})
}
