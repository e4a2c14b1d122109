package schema_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestFoldOfEveryCharacter requires that each character of Unicode has one fold, whatever its letter case and form,
// alone and between letters and marks.
func TestFoldOfEveryCharacter(t *testing.T) {
	forms := []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD}
	tested := 0
	for r := range rune(unicode.MaxRune + 1) {
		alone := string(r)
		if 0xd800 <= r && r < 0xe000 || unicode.In(r, unicode.Han, unicode.Hangul) && norm.NFKD.IsNormalString(alone) ||
			schema.Fold(alone) == alone && unicode.ToUpper(r) == r && norm.NFKD.IsNormalString(alone) && !unicode.IsMark(r) {
			continue // neither case nor form
		}
		tested++
		for _, text := range []string{alone, "i" + alone, alone + "\u0307", "a" + alone + "\u0323"} {
			text = norm.NFC.String(text)
			folded := schema.Fold(text)
			var same []string
			for _, cased := range []string{text, strings.ToUpper(text), strings.ToLower(text), strings.ToTitle(text), folded} {
				for _, form := range forms {
					same = append(same, form.String(cased))
				}
			}
			slices.Sort(same)
			for _, other := range slices.Compact(same) {
				if got := schema.Fold(other); got != folded {
					t.Errorf("%+q, as %+q, folds to %+q and %+q", text, other, folded, got)
				}
			}
		}
	}
	if tested < 10_000 {
		t.Errorf("%d characters have letter cases or forms", tested)
	}
}

// FuzzFold checks that a text has one fold in every form, which is a fold itself.
func FuzzFold(f *testing.F) {
	for _, text := range []string{"", "Straße", "İi\u0307ıI", "i\u0331\u0307", "a\u0301\u034f\u0323", "\u1fb3\u0323", "ﷺ",
		"\u1112\u1161\u11ab", "❤\ufe0f", "https://xn--mnchen-3ya.example/Ä", "\xff\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		folded, url := schema.Fold(text), schema.FoldURL(text)
		if !utf8.ValidString(text) {
			return
		}
		if !utf8.ValidString(folded) || !utf8.ValidString(url) {
			t.Errorf("%+q folds to %+q and %+q", text, folded, url)
		}
		for _, same := range []string{folded, norm.NFC.String(text), norm.NFD.String(text), norm.NFKC.String(text)} {
			if got := schema.Fold(same); got != folded {
				t.Errorf("%+q folds to %+q, and %+q to %+q", text, folded, same, got)
			}
		}
		if schema.IsFolded(text) && (folded != strings.ToLower(text) || url != folded) {
			t.Errorf("%+q folds to %+q and %+q", text, folded, url)
		}
	})
}

func TestFoldURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://Example.org/Straße?Q=1":     "https://example.org/strasse?q=1",
		"HTTPS://XN--MNCHEN-3YA.de:8443/A":   "https://münchen.de:8443/a",
		"https://MU\u0308NCHEN。de/":          "https://münchen.de/",
		"xn--strae-oqa.de":                   "strasse.de",
		"straße.de":                          "strasse.de",
		"https://xn--no-punycode-/xn--":      "https://xn--no-punycode-/xn--",
		"https://[2001:DB8::1]/x":            "https://[2001:db8::1]/x",
		"https://example.org/xn--mnchen-3ya": "https://example.org/xn--mnchen-3ya",
		"":                                   "",
	} {
		testkit.Equal(t, url, schema.FoldURL(url), want)
	}
}
