package schema_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

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
