package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var searchBehaviours = []behaviour[schema.Database]{
	{"Links finds parts of hash, URL, title and tags in any letter case and Unicode form", searchesText},
	{"Links finds what an edit has brought, and not what it has replaced", searchesEdited},
	{"Links takes hundreds of words", searchesManyWords},
	{"Links treats no character of a word specially", searchesLiterally},
	{"FoldLinks finds nothing to fold among links of this release", foldsNothing},
	{"LinksByID returns only the account's links", findsLinksByID},
	{"LinksByID returns nothing for no IDs", findsLinksByNoID},
}

// withWord returns a filter for links that match a word.
func withWord(text string) schema.LinkFilter {
	return schema.LinkFilter{Words: []schema.LinkWord{{Text: text}}}
}

func addLinkTo(t *testing.T, store schema.LinkStore, accountID int64, hash, url string) schema.Link {
	t.Helper()
	link := newLink(accountID, 0, hash)
	link.URL = url
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	return link
}

// wantFound requires that the results are want, in this order, all on page 1.
func wantFound(t *testing.T, store schema.LinkStore, accountID int64, query string, want ...schema.Link) {
	t.Helper()
	got, total, err := store.Links(t.Context(), accountID, withWord(query), 1)
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprintf("total by %q", query), total, int64(len(want)))
	testkit.Equal(t, fmt.Sprintf("links by %q", query), len(got), len(want))
	for i := range want {
		testkit.Equal(t, "link", got[i], want[i])
	}
}

// searched are titles, or URLs where they begin with https, with words that find them and words that do not.
var searched = []struct {
	name, text     string
	finds, ignores []string
}{
	{"ASCII", "https://shop.example/Offers?id=7", []string{"offers?ID=7", "SHOP", "hOp.eX"}, []string{"shop/offers"}},
	{"Latin", "Ärger mit Œuvre", []string{"ärger", "ÄRGER", "A\u0308RGER", "a\u0308rger", "œuvre", "ŒUV"},
		[]string{"arger", "oeuvre"}},
	{"Cyrillic", "Привет Мир", []string{"привет", "ПРИВЕТ", "ривет", "мир"}, []string{"превет"}},
	{"Cyrillic, taken apart", "Йод ЙОД", []string{"йод", "\u0438\u0306од", "\u0418\u0306ОД"}, []string{"иод"}},
	{"final sigma", "ΟΔΥΣΣΕΥΣ ὀδυσσεύς", []string{"οδυσσευς", "ΟΔΥΣΣΕΥΣ", "οδυσσευσ", "ὈΔΥΣΣΕΎΣ"}, []string{"οδυσεας"}},
	{"iota below", "ᾳδης", []string{"ΑΙΔΗΣ", "αιδης", "ᾼΔΗΣ"}, []string{"αδης"}},
	{"sharp s", "Große Straße", []string{"strasse", "STRASSE", "straße", "STRAẞE", "gross"}, []string{"strase"}},
	{"Turkish", "İstanbul'da ılık KIŞ", []string{"istanbul", "ISTANBUL", "İSTANBUL", "i\u0307stanbul", "ılık", "ILIK",
		"ilik", "kış", "kiş"}, []string{"kis"}},
	{"Turkish, typed on another keyboard", "ISTANBUL istanbul", []string{"İstanbul", "ıstanbul"}, []string{"istambul"}},
	{"dots below and above", "i\u0323\u0307x", []string{"I\u0307\u0323X", "ỊX", "ịx"}, []string{"ix"}},
	{"ligatures", "ﬁne oﬀice Ŋ ŉ", []string{"fine", "FINE", "ﬁNE", "office", "ŋ", "ʼn"}, []string{"fline"}},
	{"full width", "ＳＡＬＥ １００％", []string{"sale", "ｓａｌｅ", "100%", "１００%"}, []string{"sal3"}},
	{"half width", "ｶﾞｲﾄﾞ", []string{"ガイド", "カ\u3099イト\u3099", "ｶﾞｲ"}, []string{"カイト"}},
	{"Hangul", "한국어", []string{"\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국", "국어"}, []string{"하국"}},
	{"Arabic", "ﻣﺮﺣﺒﺎ ﷲ ﻻ", []string{"مرحبا", "ﻣﺮﺣﺒﺎ", "مرح", "الله", "لا"}, []string{"مرحبة"}},
	{"Hebrew", "שׁלום", []string{"\u05e9\u05c1לום", "שׁלום"}, []string{"שׂלום"}},
	{"Devanagari", "क़लम", []string{"\u0915\u093cलम", "\u0958लम"}, []string{"कलम"}},
	{"Vietnamese", "Tiếng Việt", []string{"TIẾNG", "tie\u0302\u0301ng", "vi\u00ea\u0323t", "VIỆT"}, []string{"tieng"}},
	{"symbols", "K Å Ω ½ x² №5 ™", []string{"k", "å", "Å", "ω", "1⁄2", "x2", "no5", "TM"}, []string{"½x"}},
	{"emoji", "❤️ 👨‍👩‍👧 🏳️‍🌈 👍🏽", []string{"❤", "❤\ufe0f", "👨‍👩‍👧", "👩", "🏳🌈", "👍🏽", "👍"}, []string{"👎", "👍🏿"}},
	{"characters that nobody sees", "Donau\u00addampf\u200bschiff \u200fאב", []string{"donaudampfschiff",
		"DONAU\u2060DAMPF", "אב", "\u200eאב"}, []string{"donau-dampf"}},
	{"other alphabets", "𐐔𐐇𐐝 Ꮳ ꭰ Ⴀ", []string{"𐐼𐐯𐑅", "ꮳ", "Ꭰ", "ⴀ"}, []string{"𐐼𐐼"}},
	{"path of a URL", "https://example.org/Straße/ЖУРНАЛ", []string{"strasse/журнал", "HTTPS://EXAMPLE.ORG/STRASSE",
		"example.org/straße"}, []string{"strase"}},
	{"host in punycode", "https://xn--mnchen-3ya.example/a", []string{"münchen", "MÜNCH", "mu\u0308nchen.example/A",
		"https://münchen.example", "xn--mnch", "XN--MNCHEN-3YA.example", "https://xn--mnchen-3ya.example/a"},
		[]string{"munchen"}},
	{"host in Unicode", "https://MÜNCHEN.example/a", []string{"münchen", "xn--mnchen-3ya.example", "münchen。example",
		"HTTPS://XN--MNCHEN-3YA.EXAMPLE/A"}, []string{"xn--mnch"}},
	{"host with a sharp s", "https://straße.example/", []string{"strasse", "xn--strae-oqa.example", "STRASSE.EXAMPLE"},
		nil},
	{"wildcards and quotes", `50%_off "it's" \ [é]*`, []string{"50%_", `"IT'S"`, `\`, "[É]*", "é]", "%_OFF"},
		[]string{"5%o", "50__off", `\%`, "[a-z]"}},
}

func searchesText(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	all := addSearched(t, store, owner)
	wantSearched(t, store, owner, all)
	for i, c := range searched {
		for _, word := range c.ignores {
			if finds(t, store, owner, word, all[i]) {
				t.Errorf("%s: %+q finds %+q", c.name, word, c.text)
			}
		}
	}
	wantFound(t, store, owner.ID, "LINK-7", all[7])
	wantFound(t, store, owner.ID, "ｌｉｎｋ-７", all[7])
	wantFound(t, store, owner.ID, "TAG-11", all[11])
	wantFound(t, store, owner.ID, "7link")
}

// addSearched adds a link for each text of searched.
func addSearched(t *testing.T, store schema.Database, owner schema.Account) []schema.Link {
	t.Helper()
	all := make([]schema.Link, len(searched))
	for i, c := range searched {
		all[i] = newLink(owner.ID, 0, fmt.Sprintf("Link-%d", i))
		if all[i].Title = c.text; strings.HasPrefix(c.text, "https:") {
			all[i].Title, all[i].URL = "", c.text
		}
		all[i].Tags = []string{"tag-" + strconv.Itoa(i)}
		testkit.Must(t, store.CreateLink(t.Context(), &all[i]))
	}
	return all
}

// wantSearched requires that every word finds its link, in any letter case and form.
func wantSearched(t *testing.T, store schema.Database, owner schema.Account, all []schema.Link) {
	t.Helper()
	for i, c := range searched {
		for _, word := range append(c.finds, strings.Fields(c.text)...) {
			for _, form := range []string{word, strings.ToUpper(word), strings.ToLower(word), norm.NFD.String(word),
				norm.NFC.String(strings.ToUpper(word)), norm.NFKC.String(word)} {
				if !finds(t, store, owner, form, all[i]) {
					t.Errorf("%s: %+q does not find %+q", c.name, form, c.text)
				}
			}
		}
	}
}

func finds(t *testing.T, store schema.Database, owner schema.Account, word string, link schema.Link) bool {
	t.Helper()
	ids, err := store.LinkIDs(t.Context(), owner.ID, withWord(word), len(searched))
	testkit.Must(t, err)
	return slices.Contains(ids, link.ID)
}

// TestFolding checks that links which an older release has stored are found once they have been folded, some at a time,
// by several processes, after an interruption. exec executes a statement in the store, which is empty.
func TestFolding(t *testing.T, store schema.Database, exec func(statement string)) {
	owner := addAccount(t, store, "a@example.org")
	all := addSearched(t, store, owner)
	exec("UPDATE links SET folded_url = NULL, folded_title = NULL")
	if finds(t, store, owner, "привет", all[2]) {
		t.Fatal("the links are folded, so this test proves nothing")
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.FoldLinks(interrupted, 5); err == nil {
		t.Error("a call whose context is done succeeds")
	}
	folded, err := store.FoldLinks(t.Context(), 5)
	testkit.Must(t, err)
	testkit.Equal(t, "folded at first", folded, 5)
	if !finds(t, store, owner, "привет", all[2]) || finds(t, store, owner, "größe", all[6]) {
		t.Error("other links than the first ones are folded")
	}
	for _, err := range concurrently(2, func(int) error {
		for {
			if folded, err := store.FoldLinks(t.Context(), 5); err != nil || folded == 0 {
				return err
			}
		}
	}) {
		testkit.Must(t, err)
	}
	wantSearched(t, store, owner, all)
}

func searchesEdited(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLinkTo(t, store, owner.ID, "hash", "https://example.org/ЖУК")
	edit := func(edit schema.LinkEdit) {
		t.Helper()
		testkit.Must(t, store.UpdateLink(t.Context(), &link, edit, hour(1)))
	}
	edit(schema.LinkEdit{Title: new("Größe")})
	wantFound(t, store, owner.ID, "жук", link)
	wantFound(t, store, owner.ID, "grösse", link)
	edit(schema.LinkEdit{URL: new("https://example.org/plain"), Active: new(false)})
	wantFound(t, store, owner.ID, "жук")
	wantFound(t, store, owner.ID, "GRÖSSE", link)
	edit(schema.LinkEdit{Title: new("Plain")})
	wantFound(t, store, owner.ID, "grösse")
	changes := schema.LinkChanges{AccountID: owner.ID, IDs: []int64{link.ID}, At: hour(2),
		Edit: func(schema.Link) (schema.LinkEdit, error) { return schema.LinkEdit{Title: new("Ё")}, nil }}
	testkit.Must(t, store.ChangeLinks(t.Context(), &changes))
	link.Title, link.UpdatedAt, link.Version = "Ё", hour(2), link.Version+1
	wantFound(t, store, owner.ID, "ё", link)
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(3)))
	wantFound(t, store, owner.ID, "ё")
	trash := withWord("Ё")
	trash.DeletedAfter = hour(0)
	_, total, err := store.Links(t.Context(), owner.ID, trash, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "found in the trash", total, 1)
}

func searchesManyWords(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := newLink(owner.ID, 0, "hash")
	var filter schema.LinkFilter
	for i := range 150 {
		word := string(rune('à' + i))
		link.Title += word + " "
		filter.Words = append(filter.Words, schema.LinkWord{Text: word}, schema.LinkWord{Text: "x"})
	}
	link.URL = "https://example.org/x"
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	for _, missing := range []string{"", "none"} {
		filter.Words[7].Text = cmp.Or(missing, filter.Words[7].Text)
		_, total, err := store.Links(t.Context(), owner.ID, filter, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "found"+missing, total == 1, missing == "")
	}
}

func foldsNothing(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLinkTo(t, store, owner.ID, "hash", "https://xn--mnchen-3ya.example/Ж")
	testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: new("Ё")}, hour(1)))
	folded, err := store.FoldLinks(t.Context(), 10)
	testkit.Must(t, err)
	testkit.Equal(t, "folded", folded, 0)
}

func searchesLiterally(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLinkTo(t, store, owner.ID, "plain", "https://example.org/abc")
	percent := addLinkTo(t, store, owner.ID, "percent", "https://example.org/100%25")
	under := addLinkTo(t, store, owner.ID, "a_c", "https://example.org/")
	slash := addLinkTo(t, store, owner.ID, "slash", `https://example.org/a\b'"*[x]`)
	wantFound(t, store, owner.ID, "%", percent)
	wantFound(t, store, owner.ID, "0%2", percent)
	wantFound(t, store, owner.ID, "%example%")
	wantFound(t, store, owner.ID, "_", under)
	wantFound(t, store, owner.ID, "a_c", under)
	for _, query := range []string{`\`, `A\B`, `'`, `"`, `*`, `[x]`, `b'"*[`} {
		wantFound(t, store, owner.ID, query, slash)
	}
	for _, query := range []string{`\%`, `\_`, `\\`, `a.c`, `a*c`, `.*`, `^`, `' OR '1'='1`} {
		wantFound(t, store, owner.ID, query)
	}
}

func findsLinksByID(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	onDefault, onDomain := addLink(t, store, owner.ID, 0, "hash"), addLink(t, store, owner.ID, domain.ID, "hash")
	onDomain.Host = domain.Host
	others := addLink(t, store, other.ID, 0, "other")
	addLink(t, store, owner.ID, 0, "unasked")
	ids := []int64{onDomain.ID, 0, onDefault.ID, others.ID, onDomain.ID, others.ID + 1000, -1}
	got, err := store.LinksByID(t.Context(), owner.ID, ids)
	testkit.Must(t, err)
	testkit.Equal(t, "links", len(got), 2)
	for _, link := range got {
		if link.ID == onDomain.ID {
			testkit.Equal(t, "link", link, onDomain)
		} else {
			testkit.Equal(t, "link", link, onDefault)
		}
	}
	if got[0].ID == got[1].ID {
		t.Fatalf("link %d came twice", got[0].ID)
	}
}

func findsLinksByNoID(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "hash")
	for _, ids := range [][]int64{nil, {}} {
		got, err := store.LinksByID(t.Context(), owner.ID, ids)
		testkit.Must(t, err)
		testkit.Equal(t, "links", len(got), 0)
	}
}
