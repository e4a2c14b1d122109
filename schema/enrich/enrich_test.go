package enrich_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/testkit"
)

// sampleClick has a value in every field that Enrich reads.
func sampleClick() *schema.Click {
	return &schema.Click{UserAgent: []byte(chromeOnWindows), Referrer: []byte("https://www.News.example:8443/x?y"),
		Network: []byte{81, 2, 69}, Language: []byte("de-AT"), Route: []byte("phones"), Campaign: []byte("mail / \x01ü\xc3"),
		Path: []byte("docs/\x01ü")}
}

func TestEnricher(t *testing.T) {
	countries, _ := openCountries(t)
	want := enrich.Source{Agent: enrich.Agent{Device: schema.Desktop, Browser: "Chrome", OS: "Windows"},
		Referrer: "news.example", Country: "GB", Language: "de", Route: "phones", Campaign: "mail / ü", Path: "docs/ü"}
	check := func(t *testing.T, got enrich.Source) {
		t.Helper()
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	t.Run("returns the source of a click", func(t *testing.T) {
		check(t, enrich.New(countries).Enrich(sampleClick()))
	})
	t.Run("has a column of a batch for each name", func(t *testing.T) {
		var b schema.ClickBatch
		want.AppendTo(&b)
		names := map[schema.Dimension]string{schema.ByDevice: schema.Desktop, schema.ByBrowser: "Chrome",
			schema.ByOS: "Windows", schema.ByReferrer: "news.example", schema.ByCountry: "GB", schema.ByLanguage: "de",
			schema.ByRoute: "phones", schema.ByCampaign: "mail / ü", schema.ByPath: "docs/ü"}
		for _, by := range schema.Dimensions() {
			if got := *b.Names(by); len(got) != 1 || got[0] != names[by] || got[0] == "" {
				t.Errorf("got %q in the column of %s, want %q", got, by, names[by])
			}
		}
	})
	t.Run("does not allocate for memoized headers and networks", func(t *testing.T) {
		e, click := enrich.New(countries), sampleClick()
		e.Enrich(click)
		if allocs := testing.AllocsPerRun(100, func() { e.Enrich(click) }); allocs != 0 {
			t.Errorf("got %v allocations, want 0", allocs)
		}
	})
	t.Run("does not allocate for another page of a memoized site", func(t *testing.T) {
		e, n := enrich.New(countries), byte(0)
		click := sampleClick()
		e.Enrich(click)
		if allocs := testing.AllocsPerRun(100, func() {
			n++
			click.Referrer[len(click.Referrer)-1] = n
			e.Enrich(click)
		}); allocs != 0 {
			t.Errorf("got %v allocations, want 0", allocs)
		}
	})
	t.Run("keeps no reference to the click's bytes", func(t *testing.T) {
		e, click := enrich.New(countries), sampleClick()
		before := e.Enrich(click)
		clear(click.UserAgent)
		clear(click.Referrer)
		clear(click.Network)
		clear(click.Language)
		clear(click.Route)
		clear(click.Campaign)
		clear(click.Path)
		check(t, before)
		check(t, e.Enrich(sampleClick()))
	})
	t.Run("ignores bytes beyond the length limits of a click", func(t *testing.T) {
		agent := chromeOnWindows + strings.Repeat("x", schema.MaxUserAgentLen)
		click := &schema.Click{UserAgent: append([]byte(agent[:schema.MaxUserAgentLen]), " Googlebot/2.1"...),
			Referrer: append(bytes.Repeat([]byte(" "), schema.MaxReferrerLen), "https://news.example/"...)}
		if got := enrich.New(nil).Enrich(click); got.Device != schema.Desktop || got.Referrer != "" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("counts a path that is longer than a name, or has nothing visible, as Other", func(t *testing.T) {
		longest := strings.Repeat("ü", schema.MaxPathName)
		for path, want := range map[string]string{longest: longest, longest + "x": schema.OtherName,
			"\x00\xff": schema.OtherName, "a/b": "a/b", "": "", strings.Repeat("𝄞", 2*schema.MaxPathName): schema.OtherName} {
			if got := enrich.New(nil).Enrich(&schema.Click{Path: []byte(path)}); got.Path != want {
				t.Errorf("path %q: got %q, want %q", path, got.Path, want)
			}
		}
	})
	t.Run("uses bounded memory for any headers", func(t *testing.T) {
		e := enrich.New(countries)
		before := testkit.Heap()
		agent, site := strings.Repeat("x", 1000), strings.Repeat(".x", 1000)
		for i := range 100_000 {
			click := &schema.Click{Network: binary.BigEndian.AppendUint32(nil, uint32(i))[1:],
				Language: fmt.Append(nil, "x-", i), Route: fmt.Append(nil, i), Campaign: fmt.Append(nil, i),
				Path: fmt.Append(nil, i)}
			if i < 30_000 { // headers are costly to read, and fewer are memoized than networks
				click.UserAgent = fmt.Appendf(nil, "%d%s", i, agent)
				click.Referrer = fmt.Appendf(nil, "https://%d%s.example/", i, site)
			}
			e.Enrich(click)
		}
		if grown := testkit.Heap() - before; grown > 32<<20 {
			t.Errorf("the heap grew by %d bytes over 100,000 distinct clicks", grown)
		}
		runtime.KeepAlive(e)
	})
	for name, set := range map[string]func(c *schema.Click, text []byte){
		"agents":    func(c *schema.Click, text []byte) { c.UserAgent = text },
		"referrers": func(c *schema.Click, text []byte) { c.Referrer = append([]byte("https://a.b"), text...) },
		"languages": func(c *schema.Click, text []byte) { c.Language = text },
		"routes":    func(c *schema.Click, text []byte) { c.Route = text },
		"campaigns": func(c *schema.Click, text []byte) { c.Campaign = text },
		"paths":     func(c *schema.Click, text []byte) { c.Path = text },
		"networks":  func(c *schema.Click, text []byte) { c.Network = text[len(text)-3:] },
	} {
		t.Run("uses bounded memory for short "+name, func(t *testing.T) {
			e, click := enrich.New(countries), new(schema.Click)
			before := testkit.Heap()
			for i := range uint32(300_000) {
				set(click, binary.BigEndian.AppendUint32(nil, i))
				e.Enrich(click)
			}
			if grown := testkit.Heap() - before; grown > 12<<20 { // all results would take more than 20 MiB
				t.Errorf("the heap grew by %d bytes over 300,000 distinct clicks", grown)
			}
			runtime.KeepAlive(e)
		})
	}
}

// Edges pass on any bytes from clients.
func FuzzEnrich(f *testing.F) {
	for _, k := range knownAgents(f) {
		f.Add([]byte(k.header), []byte("https://news.example/"), []byte{81, 2, 69}, []byte("de-AT"))
	}
	noise := make([]byte, schema.MaxUserAgentLen)
	rand.NewChaCha8([32]byte{}).Read(noise)
	f.Add(noise, noise, noise[:schema.MaxNetworkLen], noise)

	countries, _ := openCountries(f)
	e := enrich.New(countries)
	f.Fuzz(func(t *testing.T, agent, referrer, network, language []byte) {
		click := &schema.Click{UserAgent: agent, Referrer: referrer, Network: network, Language: language}
		got := e.Enrich(click)
		switch got.Device {
		case schema.Desktop, schema.Mobile, schema.Tablet, schema.Bot, schema.Other:
		default:
			t.Errorf("got device %q", got.Device)
		}
		if got.Browser == "" || len(got.Browser) > 20 { // names come from a list, never from the client
			t.Errorf("got browser %q", got.Browser)
		}
		if got.OS == "" || len(got.OS) > 20 || len(got.Language) > len(schema.OtherName) {
			t.Errorf("got system %q, language %q", got.OS, got.Language)
		}
		if len(got.Country) != 0 && len(got.Country) != 2 {
			t.Errorf("got country %q", got.Country)
		}
		if got.Agent != enrich.ParseAgent(string(agent[:min(len(agent), schema.MaxUserAgentLen)])) {
			t.Errorf("got agent %+v, ParseAgent disagrees", got.Agent)
		}
		if again := e.Enrich(click); again != got {
			t.Errorf("got %+v, then %+v for the same click", got, again)
		}
	})
}

func BenchmarkEnrich(b *testing.B) {
	countries, _ := openCountries(b)
	b.Run("memoized", func(b *testing.B) {
		e, click := enrich.New(countries), sampleClick()
		b.ReportAllocs()
		for b.Loop() {
			e.Enrich(click)
		}
	})
	b.Run("new network", func(b *testing.B) {
		e, click, n := enrich.New(countries), sampleClick(), uint32(0)
		b.ReportAllocs()
		for b.Loop() {
			n++
			click.Network = binary.BigEndian.AppendUint32(click.Network[:0], n)[1:]
			e.Enrich(click)
		}
	})
	b.Run("new referrer", func(b *testing.B) {
		e, click, n := enrich.New(countries), sampleClick(), 0
		b.ReportAllocs()
		for b.Loop() {
			n++
			click.Referrer = fmt.Appendf(click.Referrer[:0], "https://%d.example/", n)
			e.Enrich(click)
		}
	})
}
