package workload_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"linkstream/bench/load"
	"linkstream/bench/workload"
	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

func TestLinks(t *testing.T) {
	links := workload.NewLinks(workload.MaxLinks)
	for _, link := range []int{0, 1, 35, 36, 46_655, workload.MaxLinks - 1} {
		hash := links.Hash(link)
		got, ok := links.Index(hash)
		if got != link || !ok {
			t.Errorf("Index(%q) = %d, %t, want %d", hash, got, ok, link)
		}
		testkit.Equal(t, "length of the URL of "+hash, len(links.URL(link)), len(workload.BareURL))
	}
	few := workload.NewLinks(10)
	hash := few.Hash(9)
	for _, other := range []string{few.Hash(10), "", "x" + hash[1:], hash + "0", hash[:len(hash)-1],
		hash[:len(hash)-1] + "-"} {
		if link, ok := few.Index(other); ok {
			t.Errorf("Index(%q) = %d, but it is no link's hash", other, link)
		}
	}
}

// TestVisits drives a source as a load generator does.
func TestVisits(t *testing.T) {
	const count = 50
	links := workload.NewLinks(count)
	request := func(t *testing.T, s load.Source) (link int, text string) {
		t.Helper()
		text = string(s.Append(nil))
		path, rest, found := strings.Cut(text, " HTTP/1.1\r\n")
		link, known := links.Index(strings.TrimPrefix(path, "GET /"))
		if !found || !known || !strings.Contains(rest, "Host: go.example\r\n") || !strings.HasSuffix(rest, "\r\n\r\n") {
			t.Fatalf("request %q", text)
		}
		return link, text
	}
	redirect := func(url string) load.Answer {
		return load.Answer{Status: http.StatusFound, Location: []byte(url)}
	}

	t.Run("begin with each link once, on all connections together", func(t *testing.T) {
		source := workload.NewVisits(links, count).Counted("go.example")
		one, other, seen := source(0), source(1), map[int]int{}
		for range count / 2 {
			a, _ := request(t, one)
			b, _ := request(t, other)
			seen[a]++
			seen[b]++
		}
		testkit.Equal(t, "links", len(seen), count)
	})
	t.Run("then prefer some links to others", func(t *testing.T) {
		s, seen := workload.NewVisits(links, count).Counted("go.example")(0), make([]int, count)
		for range 100 * count {
			link, _ := request(t, s)
			seen[link]++
		}
		if most, least := slices.Max(seen), slices.Min(seen); most < 3*least {
			t.Errorf("visits of the links: %d", seen)
		}
	})
	t.Run("are counted by link if the server counts them and the answer is right", func(t *testing.T) {
		visits := workload.NewVisits(links, count)
		s := visits.Counted("go.example")(0)
		link, _ := request(t, s)
		for _, wrong := range []load.Answer{redirect(links.URL(link + 1)), redirect(""), {Status: http.StatusNotFound}} {
			if err := s.Check(wrong); err == nil || !strings.Contains(err.Error(), links.Hash(link)) {
				t.Errorf("answer %+v: error %v", wrong, err)
			}
		}
		testkit.Equal(t, "clicks after wrong answers", visits.Clicks(link), 0)
		testkit.Must(t, s.Check(redirect(links.URL(link))))
		testkit.Equal(t, "clicks", visits.Clicks(link), 1)
		testkit.Equal(t, "most visited link", visits.MostVisited(), link)

		s = visits.Uncounted("go.example")(0)
		link, _ = request(t, s)
		before := visits.Clicks(link)
		testkit.Must(t, s.Check(redirect(links.URL(link))))
		testkit.Equal(t, "clicks of a server that does not count", visits.Clicks(link), before)
	})
	t.Run("of a bare server lead to one URL", func(t *testing.T) {
		s := workload.NewVisits(links, count).Bare("go.example")(0)
		link, _ := request(t, s)
		testkit.Must(t, s.Check(redirect(workload.BareURL)))
		if link > 0 && s.Check(redirect(links.URL(link))) == nil {
			t.Error("another URL is right as well")
		}
	})
	t.Run("of a peer have one path and a check of its own", func(t *testing.T) {
		var checked int
		s := workload.NewVisits(links, count).To("go.example", "/abc?d",
			func(a load.Answer) error { checked = a.Status; return nil })(0)
		if text := string(s.Append(nil)); !strings.HasPrefix(text, "GET /abc?d HTTP/1.1\r\nHost: go.example\r\n") {
			t.Errorf("request %q", text)
		}
		testkit.Must(t, s.Check(load.Answer{Status: 418}))
		testkit.Equal(t, "status that is checked", checked, 418)
	})
	t.Run("ask for the end of the connection with Reconnect", func(t *testing.T) {
		visits := workload.NewVisits(links, count)
		visits.Reconnect = true
		if _, text := request(t, visits.Counted("go.example")(0)); !strings.Contains(text, "\r\nConnection: close\r\n") {
			t.Errorf("request %q", text)
		}
	})
}

func TestHistory(t *testing.T) {
	const count, clicks = 20, 3000
	store, err := sqlite.OpenClickStore(t.Context(), t.TempDir()+"/clicks.db")
	testkit.Must(t, err)
	defer testkit.Close(t, store)
	history := workload.NewHistory(workload.NewLinks(count), 0.5)
	history.Batch = clicks * 2 / 3
	testkit.Must(t, history.Store(t.Context(), store, clicks))

	ids, sum := make([]int64, count), int64(0)
	for i := range ids {
		ids[i] = int64(i) + 1
		sum += history.Clicks[i]
	}
	testkit.Equal(t, "clicks of all links", sum, clicks)
	counts, err := store.ClickCounts(t.Context(), 1, ids)
	testkit.Must(t, err)
	for i, id := range ids {
		testkit.Equal(t, "counted clicks of a link", counts[id], history.Clicks[i])
	}
	most := history.MostVisited()
	if history.Clicks[most] < clicks/2 {
		t.Errorf("%d clicks on the hot link %d", history.Clicks[most], most)
	}
	stats, err := store.LinkStats(t.Context(), ids[most])
	testkit.Must(t, err)
	if days := len(stats.ClicksByDay); days < 30 || days > 31 {
		t.Errorf("clicks on %d days, want 30 or 31", days)
	}
}
