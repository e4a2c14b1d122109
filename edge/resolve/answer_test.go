package resolve_test

import (
	"net/netip"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// create creates a link with these fields on the default domain.
func (e *env) create(t testing.TB, link schema.Link) schema.Link {
	t.Helper()
	link.AccountID, link.Active, link.CreatedAt = e.accountID, true, time.Now()
	testkit.Must(t, e.store.CreateLink(t.Context(), &link))
	return link
}

// wantTarget checks the answer that Resolve looks up if need be, and then the same answer from memory.
func (e *env) wantTarget(t testing.TB, hash string, now time.Time, location string, forward bool, stop resolve.Stop) {
	t.Helper()
	check := func(way string, got resolve.Target, err error) {
		t.Helper()
		if err != nil || string(got.Location) != location || got.Forward != forward || got.Stop != stop {
			t.Errorf("%s of %q: %q, forward %t, stop %d, error %v; want %q, %t, %d",
				way, hash, got.Location, got.Forward, got.Stop,
				err, location, forward, stop)
		}
	}
	got, err := e.resolver.Resolve([]byte("sho.rt"), []byte(hash), netip.Addr{}, now)
	check("Resolve", got, err)
	got, err = e.resolver.Resolve([]byte("sho.rt"), []byte(hash), netip.Addr{}, now)
	check("memory", got, err)
}

func TestExpiry(t *testing.T) {
	e := newEnv(t, func(cfg *resolve.Config) { cfg.CacheTTL = 24 * time.Hour })
	expiry := time.Now().Add(time.Hour).Truncate(time.Second)
	e.create(t, schema.Link{Hash: "gone", URL: "https://example.com/ü", ExpiresAt: expiry})
	e.create(t, schema.Link{
		Hash: "moved", URL: "https://example.com/", ExpiresAt: expiry, ExpiredURL: "https://late.example/ü",
		ForwardQuery: true})
	e.create(t, schema.Link{
		Hash: "forward", URL: "https://example.com/", ForwardQuery: true, ExpiredURL: "https://late.example/"})
	for range 2 { // from the store, and from memory
		for _, before := range []time.Time{expiry.Add(-time.Minute), expiry.Add(-time.Nanosecond)} {
			e.wantTarget(t, "gone", before, "https://example.com/%C3%BC", false, resolve.NotStopped)
			e.wantTarget(t, "moved", before, "https://example.com/", true, resolve.NotStopped)
		}
		for _, after := range []time.Time{expiry, expiry.Add(time.Hour)} {
			e.wantTarget(t, "gone", after, "", false, resolve.Expired)
			e.wantTarget(t, "moved", after, "https://late.example/%C3%BC", true, resolve.NotStopped)
			e.wantTarget(t, "forward", after, "https://example.com/", true, resolve.NotStopped)
		}
	}
	e.wantLookups(t, 3)
}

func TestDeletedLink(t *testing.T) {
	e := newEnv(t, nil)
	now := time.Now()
	link := e.create(t, schema.Link{
		Hash: "abc", URL: "https://example.com/", ForwardQuery: true, ExpiresAt: now.Add(time.Hour)})
	e.wantTarget(t, "abc", now, "https://example.com/", true, resolve.NotStopped)
	testkit.Must(t, e.store.DeleteLink(t.Context(), link, now))
	e.resolver.Drop(schema.Change{Hash: "abc"})
	for range 2 {
		e.wantTarget(t, "abc", now, "", false, resolve.Deleted)
	}
	e.create(t, schema.Link{Hash: "abc", URL: "https://again.example/"})
	e.resolver.Drop(schema.Change{Hash: "abc"})
	e.want(t, "sho.rt", "abc", now, "https://again.example/", "")
}

func TestPreview(t *testing.T) {
	e := newEnv(t, nil)
	now := time.Now()
	domain := e.domain(t, "go.example.com", true)
	link := schema.Link{
		AccountID: e.accountID, DomainID: domain, Hash: "abc", URL: "https://example.com/", Title: "A title",
		Active: true, CreatedAt: now}
	testkit.Must(t, e.store.CreateLink(t.Context(), &link))
	preview := func() (resolve.Target, schema.Link, error) {
		return e.resolver.Preview([]byte("go.example.com"), []byte("abc"), netip.Addr{}, now)
	}
	target, got, err := preview()
	testkit.Must(t, err)
	if got.Title != "A title" || got.ID != link.ID || string(target.Location) != "https://example.com/" {
		t.Errorf("%+v, %s", got, target.Location)
	}
	_, _, err = e.resolver.Preview([]byte("sho.rt"), []byte("abc"), netip.Addr{}, now)
	testkit.WantCode(t, err, schema.CodeNotFound)
	e.store.inject(down)
	_, _, err = preview()
	testkit.WantCode(t, err, schema.CodeUnavailable)
	e.store.inject(nil)
	testkit.Must(t, e.store.DeleteLink(t.Context(), link, now))
	e.resolver.Drop(schema.Change{DomainID: domain, Hash: "abc"})
	if target, got, err = preview(); err != nil || got.ID != 0 || target.Stop != resolve.Deleted {
		t.Errorf("deleted: %+v, %+v, %v", target, got, err)
	}
}

// Each page about a link is a look-up, so a client gets only so many of them. It keeps its links.
func TestPreviewsAreBounded(t *testing.T) {
	e := newEnv(t, nil)
	now := time.Now()
	e.create(t, schema.Link{Hash: "abc", URL: "https://example.com/"})
	pages := func(client string, now time.Time) (read, refused int) {
		for range 1000 {
			switch _, _, err := e.resolver.Preview([]byte("sho.rt"), []byte("abc"), netip.MustParseAddr(client), now); err {
			case nil:
				read++
			case resolve.ErrTooMany:
				refused++
			default:
				t.Fatal(err)
			}
		}
		return read, refused
	}
	for _, c := range []struct {
		client string
		at     time.Time
		want   int
	}{
		{"192.0.2.1", now, 200},
		{"192.0.2.2", now, 200},
		{"192.0.2.1", now.Add(time.Second), 20},
	} {
		if read, refused := pages(c.client, c.at); read != c.want || refused != 1000-c.want {
			t.Errorf("%s gets %d pages, want %d; %d are refused", c.client, read, c.want, refused)
		}
	}
	refused := netip.MustParseAddr("192.0.2.1")
	if e.resolver.WaitPreview(refused, now) <= 0 || e.resolver.Wait(refused, now) != 0 {
		t.Error("pages count as look-ups of links")
	}
	if n := e.log.Count("pages about links refused"); n != 1 {
		t.Errorf("said %d times:\n%s", n, e.log)
	}
}
