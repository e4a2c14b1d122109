// Package programs distinguishes user agents of programs from user agents of people. Programs are crawlers, previews,
// monitors, scanners and HTTP libraries; agents of people are browsers and apps that show pages.
//
// The patterns of known programs come from crawler-user-agents, a maintained list; update.sh replaces them with its
// newest release. Our own rules find what a list cannot: agents that name themselves with a word such as "monitor", and
// agents that do not look like a browser's.
package programs

import (
	_ "embed"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
)

//go:embed patterns.txt
var patterns string

// Match reports whether a User-Agent header is a program's. Its time is linear in the length of the header.
func Match(header string) bool {
	own := withoutDevices(header)
	return !hasBrowserForm(header) || hasWord(own) || known().match(own)
}

// hasBrowserForm reports whether a header could be a browser's: names with versions, and a comment about the system.
// Text browsers and old phones send no comment, and some apps one in square brackets.
func hasBrowserForm(header string) bool {
	switch {
	case strings.Contains(header, "FBAN/"):
		return true
	case header == "" || !isLetter(header[0]):
		return false
	case strings.Contains(header, "("), strings.Contains(header, " Profile/MIDP"):
		return true
	}
	for _, browser := range []string{"Lynx/", "w3m/", "Links ", "ELinks/"} {
		if strings.HasPrefix(header, browser) {
			return true
		}
	}
	return false
}

// deviceMarks are parts of comments that describe a device of Android, UC Browser or KaiOS.
var deviceMarks = []string{"ndroid", "Adr ", "(Mobile;"}

// productOrURL matches the fields of a device's comment by which programs name themselves: Storebot-Google/1.0.
var productOrURL = regexp.MustCompile(`^[^ ]*/v?\d|://`)

// withoutDevices returns a header without the descriptions of devices: models, code names and carriers are any words.
func withoutDevices(header string) string {
	if !containsAny(header, deviceMarks) && !strings.Contains(header, "[FB") {
		return header
	}
	var own strings.Builder
	for header != "" {
		before, comment, after := cutComment(header)
		own.WriteString(before)
		switch {
		case strings.HasSuffix(before, "Android "), strings.HasPrefix(comment, "[FB"): // nothing but the device
		case containsAny(comment, deviceMarks):
			for field := range strings.SplitSeq(strings.Trim(comment, "()"), ";") {
				if field = strings.TrimSpace(field); productOrURL.MatchString(field) {
					own.WriteString("; " + field)
				}
			}
		default:
			own.WriteString(comment)
		}
		header = after
	}
	return own.String()
}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// cutComment cuts a header around its first comment, with its parentheses or square brackets. Comments may be nested,
// and truncated ones have no end.
func cutComment(header string) (before, comment, after string) {
	start, depth := len(header), 0
	for i, c := range []byte(header) {
		switch c {
		case '(', '[':
			start = min(start, i)
			depth++
		case ')', ']':
			if depth--; depth == 0 {
				return header[:start], header[start : i+1], header[i+1:]
			}
			depth = max(depth, 0)
		}
	}
	return header[:start], header[start:], ""
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

// words are names that programs use for themselves, and parts of the addresses that they give. They are patterns of
// headers in lower case: "bot" ends a word, unlike in Caboto, and among browsers only Internet Explorer and Konqueror
// are "compatible".
var words = []string{
	`bots?(?:[^a-z]|$)`, `compatible; *(?:$|[^ mk]|m[^s]|k[^o])`, `like gecko;`,
	`check(?:er)?(?:[^a-z0-9]|$)`, `scan(?:ner)?(?:[^a-z]|$)`, `audit(?:or)?(?:[^a-z]|$)`, `research(?:[^a-z]|$)`,
	"crawl", "spider", "preview", "http", "monitor", "uptime", "inspect", "measurement", "diagnostic", "lookup",
	"speed insights", "verification", "headless", "lighthouse", "imageproxy", "validator", "-google/", "cloudflare",
	"python", "libwww", "perl", `java/\d`, "ruby", "php/", "curl/", "wget/", "dalvik/", "cfnetwork/", "nessus", "nikto",
	"cardyb", "sqlmap", "selenium", "puppeteer", "playwright", "phantomjs", `safari/537\.36 rocket\.chat/`, "^viber",
}

// notWords contain words and are in headers of people: Cubot is a brand of phones, libhttp the library of a console's
// browser.
var notWords = strings.NewReplacer("cubot", "", "libhttp/", "")

func hasWord(header string) bool { return anyWord().match(notWords.Replace(strings.ToLower(header))) }

var (
	known   = sync.OnceValue(func() *matcher { return newMatcher(strings.Split(patterns, "\n")) })
	anyWord = sync.OnceValue(func() *matcher { return newMatcher(words) })
)

// matcher searches a header for all patterns at once. Each pattern has a literal that every match contains. Where the
// first bytes of a literal are found, its pattern is tried. So only few of the patterns are.
type matcher struct {
	maybe   [1 << 16 / 64]uint64 // hashes of the keys of literals
	literal map[key][]candidate
	others  []*regexp.Regexp // patterns without such a literal
}

// key is the beginning of a literal.
type key [3]byte

type candidate struct {
	literal string
	whole   *regexp.Regexp // nil if the literal is the whole pattern
}

// newMatcher returns a matcher of RE2 patterns. Empty lines and lines that begin with # are comments.
func newMatcher(patterns []string) *matcher {
	m := &matcher{literal: map[key][]candidate{}}
	for _, pattern := range patterns {
		if pattern != "" && pattern[0] != '#' {
			m.add(pattern)
		}
	}
	return m
}

func (m *matcher) add(pattern string) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err) // the patterns are part of the program, and tested
	}
	if parsed.Op == syntax.OpAlternate {
		for _, alternative := range parsed.Sub {
			m.add(alternative.String())
		}
		return
	}
	literal := required(parsed.Simplify())
	if len(literal) < len(key{}) {
		m.others = append(m.others, regexp.MustCompile(pattern))
		return
	}
	c := candidate{literal: literal}
	if parsed.Op != syntax.OpLiteral {
		c.whole = regexp.MustCompile(pattern)
	}
	k := key([]byte(literal))
	m.maybe[k.hash()/64] |= 1 << (k.hash() % 64)
	m.literal[k] = append(m.literal[k], c)
}

// required returns the longest literal that every match contains, as far as that is easily seen.
func required(re *syntax.Regexp) (longest string) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if s := required(sub); len(s) > len(longest) {
				longest = s
			}
		}
	}
	return longest
}

func (k key) hash() uint16 {
	return uint16((uint32(k[0])<<16 | uint32(k[1])<<8 | uint32(k[2])) * 2654435761 >> 16)
}

func (m *matcher) match(header string) bool {
	for i := 0; i+len(key{}) <= len(header); i++ {
		k := key{header[i], header[i+1], header[i+2]}
		if m.maybe[k.hash()/64]&(1<<(k.hash()%64)) == 0 {
			continue
		}
		for _, c := range m.literal[k] {
			switch {
			case !strings.HasPrefix(header[i:], c.literal):
			case c.whole == nil, strings.Index(header, c.literal) == i && c.whole.MatchString(header): // tried once
				return true
			}
		}
	}
	for _, re := range m.others {
		if re.MatchString(header) {
			return true
		}
	}
	return false
}
