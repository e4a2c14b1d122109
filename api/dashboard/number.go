package dashboard

import "strconv"

// number formats n as English does, the language of all pages: 1,234.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// counted returns a number with its noun: "1 link", "2 links".
func counted(n int64, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return number(n) + " " + plural
}
