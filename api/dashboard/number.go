package dashboard

import "strconv"

// numbers writes numbers as the pages' language does: 1,234.
type numbers struct{}

// english is the language of all pages, whatever the browser prefers: a sentence has one language.
var english numbers

// numbers returns the format of the page.
func (c *call) numbers() numbers { return english }

// number formats n with separators.
func (numbers) number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// counted returns a number with its noun: "1 link", "2 links".
func (f numbers) counted(n int64, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return f.number(n) + " " + plural
}
