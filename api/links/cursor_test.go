package links_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// cursors returns a cursor of each kind.
func cursors(tb testing.TB, f *fixture) (all []string) {
	tb.Helper()
	for i := range 6 {
		link := schema.Link{AccountID: f.owner, Hash: fmt.Sprint("hash-", i), URL: "https://example.org/",
			CreatedAt: time.Now()}
		testkit.Must(tb, f.store.CreateLink(tb.Context(), &link))
		if i%2 == 0 {
			testkit.Must(tb, f.store.DeleteLink(tb.Context(), link, time.Now()))
		}
	}
	since := time.Now().Add(-time.Hour)
	for _, req := range []links.CursorRequest{{}, {ListRequest: links.ListRequest{Deleted: true}},
		{UpdatedSince: &since}, {UpdatedSince: &time.Time{}}} {
		req.AccountID, req.Limit = f.owner, 1
		page, err := f.ListAfter(tb.Context(), req)
		testkit.Must(tb, err)
		all = append(all, page.Next)
	}
	return all
}

// FuzzCursor parses texts as cursors. A text is a cursor if it is one that a list returns, and no other text means the
// same; with any text a list is answered, or the text is refused.
func FuzzCursor(f *testing.F) {
	service := newFixture(f, "https://sho.rt")
	for _, text := range cursors(f, service) {
		f.Add(text)
		data, err := base64.RawURLEncoding.DecodeString(text)
		testkit.Must(f, err)
		f.Add(text + "A")
		f.Add(base64.StdEncoding.EncodeToString(data))
		for i := range data {
			data[i] ^= 0x80
			f.Add(base64.RawURLEncoding.EncodeToString(data))
			data[i] ^= 0x80
		}
		f.Add(base64.RawURLEncoding.EncodeToString(append(data[:9:9], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
			0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)))
	}
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if again, ok := links.ParseCursor(text); ok && again != text {
			t.Errorf("%q is the cursor %q", text, again)
		}
		for _, req := range []links.CursorRequest{{}, {ListRequest: links.ListRequest{Deleted: true}}} {
			req.AccountID, req.Limit, req.After = service.owner, 2, text
			_, err := service.ListAfter(t.Context(), req)
			var refused *schema.Error
			if err != nil && (!errors.As(err, &refused) || refused.Code != schema.CodeInvalid) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

// A cursor of a store that has lost its newest links and changes, as after a restore, is refused.
func TestCursorAfterRestore(t *testing.T) {
	f, before := newFixture(t, "https://sho.rt"), newFixture(t, "https://sho.rt")
	cursor := cursors(t, f)[2]
	page, err := f.ListAfter(t.Context(), links.CursorRequest{ListRequest: links.ListRequest{AccountID: f.owner}, Limit: 9,
		After: cursor})
	testkit.Must(t, err)
	testkit.Equal(t, "accounts", before.owner, f.owner)
	_, err = before.ListAfter(t.Context(), links.CursorRequest{ListRequest: links.ListRequest{AccountID: before.owner},
		Limit: 9, After: page.Next})
	testkit.WantCode(t, err, schema.CodeInvalid)
}
