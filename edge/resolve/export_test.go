package resolve

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/resolve/snapshot"
	"linkstream/schema"
)

// EncodeLocation returns what appendLocation appends.
func EncodeLocation(longURL string) []byte { return appendLocation(nil, longURL) }

// SnapshotRecord is a record of a snapshot.
type SnapshotRecord = snapshot.Record

// Records of a link and of a host.
var (
	SavedLink = SnapshotRecord{Kind: kindLink,
		Body: encodeLink(nil, "\x00\x00\x00\x00\x00\x00\x00\x00abc", newEntry(linkIDs{1, 2}, []byte("https://example.com/")))}
	SavedExtended = SnapshotRecord{Kind: kindLink, Body: encodeLink(nil, "\x00\x00\x00\x00\x00\x00\x00\x00abc", newEntry(linkIDs{1, 2},
		appendAnswer(nil, &schema.Destination{URL: "https://example.com/", Active: true, ExpiredURL: "https://late.example/", Extension: &someExtension})))}
	SavedHost = SnapshotRecord{Kind: kindHost, Body: encodeHost(nil, "go.example.com", newEntry(domainID(3), appendSite(nil, &schema.Site{RootURL: "https://example.com/",
		NotFoundURL: "https://example.com/404", ExpiredURL: "https://example.com/late"}, true)))}
)

// someExtension has every field.
var someExtension = schema.Extension{
	Rules: []schema.Rule{{Name: "a", URL: "https://example.com/a", If: schema.Conditions{Device: []string{"mobile"}, OS: []string{"iOS"},
		Browser: []string{"Safari"}, Language: []string{"de"}, Country: []string{"AT"}, Query: map[string]string{"a": "b", "c": AnyValue},
		From: 1, Until: 4_000_000_000}}},
	Variants: []schema.Variant{{Name: "x", URL: "https://example.com/x", Weight: 50}, {Name: "y", URL: "https://example.com/y", Weight: 50}},
	Shares:   strings.Repeat("ab", 50),
	Password: 1 << 40, MaxClicks: 1 << 20,
	Card: &schema.Card{Title: "title", Description: "description", Image: new("https://example.com/i")},
}

// Restore does what a snapshot of one record says.
func Restore(r *Resolver, record SnapshotRecord) error {
	s := newRestoring()
	err := r.apply(s, record)
	r.load(s)
	return err
}

// WriteSnapshot writes a snapshot of n links.
func WriteSnapshot(path string, n int) error {
	log, err := snapshot.Open(path, func(snapshot.Record) error { return nil }, metrics.NewSet(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	e := newEntry(linkIDs{1, 2}, []byte("https://example.com/a/page/with/a/path/of/usual/length?and=a&query=string"))
	for i := range n {
		log.Append(kindLink, encodeLink(nil, fmt.Sprintf("\x00\x00\x00\x00\x00\x00\x00\x00%07d", i), e))
		if i%100_000 == 0 { // so that little waits to be written
			log.Close()
			if log, err = snapshot.Open(path, func(snapshot.Record) error { return nil }, metrics.NewSet(), slog.New(slog.DiscardHandler)); err != nil {
				return err
			}
		}
	}
	log.Close()
	return nil
}

// KeptAround calls keep and, wherever keep waits for the position, change. It returns the new position and whether an entry is kept.
func KeptAround(r *Resolver, change func() schema.ChangePosition) (position schema.ChangePosition, kept bool) {
	r.reaching.Lock()
	var keeping sync.WaitGroup
	keeping.Go(func() {
		first, numbers := r.keep()
		position, kept = decodePosition(first[0].Body), len(numbers) > 0
	})
	for range 1000 { // keep may go on until it waits
		runtime.Gosched()
	}
	r.position = change()
	r.reaching.Unlock()
	keeping.Wait()
	return position, kept
}

// ChangeAfterLookup calls change when a look-up on the default domain has found a link, and requests do not find it in the cache yet.
func ChangeAfterLookup(r *Resolver, hash string, found schema.Destination, change func()) {
	c := r.links
	look := c.begin
	c.begin = func(*flight[linkIDs]) {}
	f := c.join(string(binary.BigEndian.AppendUint64(nil, 0))+hash, netip.Addr{}, false, time.Now(), nil)
	c.begin = look
	c.publish(f, newEntry(linkIDs{found.LinkID, found.AccountID}, appendAnswer(nil, &found)))
	change()
	c.end([]*flight[linkIDs]{f})
}
