package resolve

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/resolve/snapshot"
	"linkstream/schema"
)

// EncodeLocation returns what appendLocation appends.
func EncodeLocation(longURL string) []byte { return appendLocation(nil, longURL) }

// SavedRecord is a record of a dump.
type SavedRecord struct {
	Kind byte
	Body []byte
}

// Records of a link and of a host.
var (
	SavedLink     = savedLink("abc", []byte("https://example.com/"))
	SavedExtended = savedLink("abc", appendAnswer(nil, &schema.EdgeLink{
		URL: "https://example.com/", Active: true, ExpiredURL: "https://late.example/", Behaviour: &someBehaviour}))
	SavedHost = SavedRecord{kindHost, appendHost(nil, newEntry(domainID(3), []byte("go.example.com"),
		appendSite(nil, &schema.Site{RootURL: "https://example.com/", NotFoundURL: "https://example.com/404",
			ExpiredURL: "https://example.com/late", Name: "Own", Color: "#ffd400"}, true)))}
)

func savedLink(hash string, answer []byte) SavedRecord {
	return SavedRecord{kindLink, appendLink(nil, newEntry(linkIDs{1, 2}, new(linkKey).append(0, []byte(hash)), answer))}
}

// someBehaviour has every field.
var someBehaviour = schema.Behaviour{
	Rules: []schema.Rule{{Name: "a", URL: "https://example.com/a", If: schema.Conditions{
		Device: []string{"mobile"}, OS: []string{"iOS"}, Browser: []string{"Safari"}, Language: []string{"de"},
		Country: []string{"AT"}, Query: map[string]string{"a": "b", "c": AnyValue},
		From: 1, Until: 4_000_000_000}}},
	Variants: []schema.Variant{
		{Name: "x", URL: "https://example.com/x", Weight: 50}, {Name: "y", URL: "https://example.com/y", Weight: 50}},
	Shares:   strings.Repeat("ab", 50),
	Password: 1 << 40, MaxClicks: 1 << 20,
	Card: &schema.Card{Title: "title", Description: "description", Image: new("https://example.com/i")},
}

// Restore restores a record of a dump.
func Restore(r *Resolver, record SavedRecord) {
	s := newRestoring(r)
	s.record(record.Kind, record.Body)
	s.wait()
}

// WriteSnapshot writes a snapshot of n links.
func WriteSnapshot(path string, n int) {
	nothing := func(byte, []byte) {}
	s := snapshot.Open(path, func(string) {}, nothing, metrics.NewSet(), slog.New(slog.DiscardHandler))
	s.Start(func(w *snapshot.Writer) error {
		answer := []byte("https://example.com/a/page/with/a/path/of/usual/length?and=a&query=string")
		for i := range n {
			record := savedLink(fmt.Sprintf("%07d", i), answer)
			if err := w.Add(record.Kind, record.Body); err != nil {
				return err
			}
		}
		return nil
	})
	s.Close()
}

// HoldPosition makes dumps wait for their position until release is called with it.
func HoldPosition(r *Resolver) (release func(Position)) {
	r.reaching.Lock()
	return func(p Position) {
		r.position = p
		r.reaching.Unlock()
	}
}

// ChangeAfterLookup calls change when a look-up on the default domain has found a link, and requests do not find it in
// the cache yet.
func ChangeAfterLookup(r *Resolver, hash string, found schema.EdgeLink, change func()) {
	c := r.links
	look := c.begin
	c.begin = func(*flight[linkIDs]) {}
	f := c.join(string(binary.BigEndian.AppendUint64(nil, 0))+hash, netip.Addr{}, false, time.Now(), nil)
	c.begin = look
	c.publish(f, newEntry(linkIDs{found.LinkID, found.AccountID}, []byte(f.question), appendAnswer(nil, &found)), 0)
	change()
	c.end([]*flight[linkIDs]{f})
}

// RestoresAfter reports whether a link is restored if the list has a key.
func RestoresAfter(key string) bool {
	s := restoring{hosts: map[string]bool{}}
	s.dropped(key)
	return !s.unknown
}

// PlaceRest returns where a link with a behaviour leads with a path behind its name, and where it leads without.
func PlaceRest(longURL string, behaviour schema.Behaviour, rest []byte) (location, without []byte, ok bool) {
	link := schema.EdgeLink{URL: longURL, Active: true, Behaviour: &behaviour}
	t := Target{host: newEntry(domainID(0), nil, nil),
		entry: newEntry(linkIDs{1, 1}, make([]byte, 10), appendAnswer(nil, &link))}
	t.entry.paths = pathsOf(&link)
	without, _ = t.Extended()
	if !t.HasPlace(rest, true) {
		return without, without, true
	}
	location, ok = t.AppendRest(nil, without, rest, true)
	return location, without, ok
}
