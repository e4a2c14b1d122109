package dashboard

import (
	"fmt"
	"hash/fnv"
	"html/template"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Icons and flags are symbols of one file each, which browsers load once. A page has many of them: they have no quotes.
const (
	iconFile = "icons.svg"
	flagFile = "flags.svg"
)

// icon returns a symbol of static/icons.svg, for {{icon "trash-2"}}. It stands beside words that say the same.
func (a assets) icon(name string) (template.HTML, error) {
	url, err := a.symbol(iconFile, name)
	if err != nil {
		return "", err
	}
	return template.HTML(`<svg class=icon aria-hidden=true><use href=` + url + ` /></svg>`), nil
}

// flag returns the flag of a country by its code of two letters, and "" for a place that has none.
func (a assets) flag(country string) template.HTML {
	url, err := a.symbol(flagFile, strings.ToUpper(country))
	if err != nil {
		return ""
	}
	return template.HTML(`<svg class=flag aria-hidden=true><use href=` + url + ` /></svg>`)
}

// symbol returns the URL of a symbol.
func (a assets) symbol(file, id string) (string, error) {
	url, ok := a.symbols[file+"#"+id]
	if !ok {
		return "", fmt.Errorf("%s has no symbol %q", file, id)
	}
	return url, nil
}

var symbolID = regexp.MustCompile(`<(?:symbol|path|circle) id="([^"]+)"`)

// addSymbols notes the symbols of a file.
func (a assets) addSymbols(file string, content []byte) {
	for _, match := range symbolID.FindAllSubmatch(content, -1) {
		id := string(match[1])
		a.symbols[file+"#"+id] = a.urls[file] + "#" + id
	}
}

// markColors are the classes mark-0 and on of the colours of marks.
const markColors = 8

// mark returns the first letter of a host on a colour of its own, for {{mark "www.example.com"}}. No other host is
// asked for its picture.
func mark(host string) template.HTML {
	host = strings.TrimPrefix(strings.ToLower(host), "www.")
	letter, _ := utf8.DecodeRuneInString(host)
	if !unicode.IsLetter(letter) && !unicode.IsDigit(letter) {
		letter = '#'
	}
	return template.HTML(fmt.Sprintf(`<span class="mark %s" aria-hidden=true>%s</span>`, markColor(host),
		template.HTMLEscapeString(string(unicode.ToUpper(letter)))))
}

// markColor returns the class of the colour that belongs to a name.
func markColor(name string) string {
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return fmt.Sprintf("mark-%d", sum.Sum32()%markColors)
}
