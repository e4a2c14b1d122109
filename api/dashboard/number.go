package dashboard

import (
	"sync"

	"github.com/valyala/fasthttp"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
)

// numbers writes numbers as the readers of a language do: 1,234 or 1.234. The digits are always 0 to 9, as in the text
// around them.
type numbers struct {
	example string // a number of seven digits, by which formats are told apart
	printer *message.Printer
}

// english is the format of the pages' own language.
var english = numbersOf(language.English)

func numbersOf(tag language.Tag) numbers {
	if latin, err := tag.SetTypeForKey("nu", "latn"); err == nil {
		tag = latin
	}
	printer := message.NewPrinter(tag)
	return numbers{printer.Sprint(number.Decimal(1234567)), printer}
}

// numbers returns the format of the first language that the browser asks for.
func (c *call) numbers() numbers {
	if c.format.printer == nil {
		c.format = english
		tags, _, err := language.ParseAcceptLanguage(string(c.http.Request.Header.Peek(fasthttp.HeaderAcceptLanguage)))
		if err == nil && len(tags) > 0 {
			c.format = numbersOf(tags[0])
		}
	}
	return c.format
}

// number formats n with separators.
func (f numbers) number(n int64) string { return f.printer.Sprint(number.Decimal(n)) }

// counted returns a number with its noun: "1 link", "2 links".
func (f numbers) counted(n int64, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return f.number(n) + " " + plural
}

// formatted has the pages by format of numbers. There are about ten formats.
type formatted struct {
	mu    sync.Mutex
	pages map[string]pages // by the format's example
}

// templates are shared by all dashboards of the process: they never change.
var templates = formatted{pages: map[string]pages{}}

// in returns the pages with a format of numbers.
func (t *formatted) in(format numbers) (pages, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.pages[format.example]; found != nil {
		return found, nil
	}
	files, err := loadAssets()
	if err != nil {
		return nil, err
	}
	made, err := newPages(files, format)
	if err == nil {
		t.pages[format.example] = made
	}
	return made, err
}
