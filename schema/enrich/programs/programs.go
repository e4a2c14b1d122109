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
	"strings"
	"sync"
)

//go:embed patterns.txt
var patterns string

// Match reports whether a User-Agent header is a program's. Its time is linear in the length of the header.
func Match(header string) bool {
	return !hasBrowserForm(header) || hasWord(header) || known().match(header)
}

// hasBrowserForm reports whether a header could be a browser's: names with versions, and a comment about the system.
// Text browsers and old phones send no comment.
func hasBrowserForm(header string) bool {
	if header == "" || !isLetter(header[0]) {
		return false
	}
	if strings.Contains(header, "(") {
		return true
	}
	for _, browser := range []string{"Lynx/", "w3m/", "Links ", "ELinks/"} {
		if strings.HasPrefix(header, browser) {
			return true
		}
	}
	return strings.Contains(header, " Profile/MIDP")
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

// words are names that programs use for themselves, and parts of the addresses that they give, in lower case.
var words = []string{
	"bot", "crawl", "spider", "preview", "http", "monitor", "uptime", "scanner", "headless", "lighthouse", "imageproxy",
	"validator",
	"python", "libwww", "perl", "java/", "ruby", "php/", "curl/", "wget/", "dalvik/", "cfnetwork/", "nessus", "nikto",
	"cardyb", "sqlmap", "selenium", "puppeteer", "playwright", "phantomjs",
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
			if strings.HasPrefix(header[i:], c.literal) && (c.whole == nil || c.whole.MatchString(header)) {
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
