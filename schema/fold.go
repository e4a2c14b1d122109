package schema

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns text in the form in which searches compare it: NFKC with full case folding and without characters that
// nobody sees, close to NFKC_Casefold (Unicode, section 3.13). It is the same for every letter case and every normal
// form of a text. In contrast to Unicode, Turkish letters fold to the letters that other keyboards have: the dot above
// of "İ" and the missing dot of "ı" make no difference. For ASCII it is the lower case.
func Fold(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	return norm.NFKC.String(foldLetters(foldLetters(text)))
}

// foldLetters folds the letter case of a text, which it takes apart. What it takes apart may have capitals again.
func foldLetters(text string) string {
	const dotless, dotAbove = 'ı', '\u0307'
	apart := norm.NFKD.String(cases.Fold().String(norm.NFKD.String(text)))
	var folded strings.Builder
	afterI := false // behind i and marks that are not above it
	for at, r := range apart {
		switch {
		case r == dotless:
			r = 'i'
		case unicode.Is(unicode.Cherokee, r): // which Fold of package cases swaps
			r = unicode.ToUpper(r)
		}
		class := norm.NFKD.PropertiesString(apart[at:]).CCC()
		if r == dotAbove && afterI || ignorable(r) {
			continue
		}
		if class == 0 || class == 230 { // 230: a mark above
			afterI = r == 'i'
		}
		folded.WriteRune(r)
	}
	return folded.String()
}

// ignorable reports whether a character has no shape of its own: joiners, soft hyphens, marks of direction, selectors
// of variants.
func ignorable(r rune) bool {
	if r < 0x80 {
		return false
	}
	return unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
		unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// FoldURL is Fold for a URL, or a part of one that begins with a host: the host is in Unicode.
func FoldURL(url string) string {
	if !IsFolded(url) {
		scheme, host, rest := CutHost(url)
		if name, err := ParseHost(host); err == nil && name.Unicode() != "" {
			url = scheme + name.Unicode() + rest
		}
	}
	return Fold(url)
}

// IsFolded reports whether FoldURL and Fold change nothing but capitals of ASCII in a text.
func IsFolded(text string) bool {
	return isASCII(text) && !strings.Contains(strings.ToLower(text), punycodePrefix)
}

// CutHost splits what may be a URL without its scheme into the scheme, the host, and the rest from the port on.
func CutHost(url string) (scheme, host, rest string) {
	if i := strings.Index(url, "://"); i >= 0 {
		scheme, url = url[:i+3], url[i+3:]
	}
	end := strings.IndexAny(url, "/?#")
	if end < 0 {
		end = len(url)
	}
	host, _ = CutPort(url[:end])
	return scheme, host, url[len(host):]
}
