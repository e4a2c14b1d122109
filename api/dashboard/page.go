package dashboard

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

//go:embed templates/*.html
var templateFiles embed.FS

// pages are the templates by name: templates/NAME.html with the layout. Each page defines "title" and "main".
type pages map[string]*template.Template

// templates are shared by all dashboards of the process: they never change.
var templates = sync.OnceValues(newPages)

func newPages() (pages, error) {
	files, err := loadAssets()
	if err != nil {
		return nil, err
	}
	// Files that begin with an underscore are shared parts.
	layout := template.New("layout").Funcs(functions(files))
	if err := parse(layout, "templates/layout.html", "templates/_*.html"); err != nil {
		return nil, err
	}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	p := pages{}
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || strings.HasPrefix(name, "_") {
			continue
		}
		p[name] = template.Must(layout.Clone())
		if err := parse(p[name], file); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// indent is white space at the beginning of lines, a twentieth of a page. No text that keeps it has more than one line.
var indent = regexp.MustCompile(`\n +`)

// parse adds the files of the patterns to t.
func parse(t *template.Template, patterns ...string) error {
	for _, pattern := range patterns {
		names, err := fs.Glob(templateFiles, pattern)
		if err != nil {
			return err
		}
		for _, file := range names {
			content, err := fs.ReadFile(templateFiles, file)
			if err != nil {
				return err
			}
			if _, err := t.New(path.Base(file)).Parse(indent.ReplaceAllString(string(content), "\n")); err != nil {
				return fmt.Errorf("parse template %q: %w", file, err)
			}
		}
	}
	return nil
}

// view is the data of every template: "." in "title" and "main", "$" within them.
type view struct {
	Data      any            // the page's own
	Problems  problems       // of the submitted form
	Notice    notice         // confirms the last action
	Live      *livePart      // nil if the page has no part that the script polls
	Email     string         // "" if nobody is signed in
	CSRF      string         // the session's CSRF token, masked; {{template "csrf" $}} puts it into a form
	Path      string         // of the request
	SignUp    bool           // anyone may sign up
	Suspended bool           // the account
	Zone      *time.Location // of all times on the page
	Nav, Menu []navItem
	Shared    bool   // the page is for readers of a shared report, and leads nowhere else
	Brand     *brand // of the page; nil: the service's
}

// pager is the place of a page in a list.
type pager struct {
	Total          int64 // objects on all pages
	Page, Last     int64
	Previous, Next string // paths of the neighbours; "" if there is no such page
	Sizes          []pageSize
}

// pageSize is a number of rows that a page can have, and the path of a page that has it.
type pageSize struct {
	Rows, Path string
	Now        bool
}

// turn sets the last page and the neighbours of a page. address returns the path of a page by its number.
func (p *pager) turn(perPage int64, address func(page int64) string) {
	p.Last = max(1, (p.Total+perPage-1)/perPage)
	if p.Page > 1 {
		p.Previous = address(min(p.Page-1, p.Last))
	}
	if p.Page < p.Last {
		p.Next = address(p.Page + 1)
	}
}

// render answers with a page.
func (d *Dashboard) render(c *call, page string, data any) error {
	return d.write(c, fasthttp.StatusOK, page, data, nil)
}

// invalid answers an invalid form with its page. data repeats the user's input.
func (d *Dashboard) invalid(c *call, page string, data any, p problems) error {
	return d.write(c, fasthttp.StatusUnprocessableEntity, page, data, p)
}

// write answers with a whole page or returns an error.
func (d *Dashboard) write(c *call, status int, page string, data any, p problems) error {
	v := d.view(c, data, p)
	if err := d.addLive(&v, page); err != nil {
		return err
	}
	if c.signedIn() {
		v.Notice = c.takeNotice()
	}
	if c.signedIn() && !c.account.Suspended {
		v.Nav, v.Menu = navigation(sections, v.Path), navigation(accountPages, v.Path)
	}
	return d.execute(c, status, page, "layout.html", v)
}

func (d *Dashboard) view(c *call, data any, p problems) view {
	v := view{Data: data, Problems: p, Path: string(c.http.URI().PathOriginal()), SignUp: d.signUp, Zone: time.UTC,
		Shared: c.route == pathShared, Brand: c.brand}
	if c.share != nil {
		v.Zone = c.zone()
	}
	if c.signedIn() {
		v.Email, v.CSRF, v.Suspended, v.Zone = c.account.Email, mask(c.csrf), c.account.Suspended, c.zone()
	}
	return v
}

// execute answers with a template of a page, which it writes into the answer, or returns an error.
func (d *Dashboard) execute(c *call, status int, page, template string, v view) error {
	c.http.Response.ResetBody()
	all, err := templates()
	if err == nil {
		err = all[page].ExecuteTemplate(c.http.Response.BodyWriter(), template, v)
	}
	if err != nil {
		c.http.Response.ResetBody()
		return fmt.Errorf("render page %q: %w", page, err)
	}
	c.http.SetStatusCode(status)
	c.http.SetContentType(htmlType)
	return nil
}

// html returns a template of a page.
func (d *Dashboard) html(page, template string, v view) ([]byte, error) {
	var body bytes.Buffer
	all, err := templates()
	if err == nil {
		err = all[page].ExecuteTemplate(&body, template, v)
	}
	if err != nil {
		return nil, fmt.Errorf("render page %q: %w", page, err)
	}
	return body.Bytes(), nil
}

// answer answers with HTML.
func (c *call) answer(status int, body []byte) {
	c.http.Response.ResetBody()
	c.http.SetStatusCode(status)
	c.http.SetContentType(htmlType)
	c.http.SetBody(body)
}

const htmlType = "text/html; charset=utf-8"

// renderBusy returns the page for requests that find no place, which must cost next to nothing.
func (d *Dashboard) renderBusy() ([]byte, error) {
	return d.html("failure", "layout.html", view{Data: errBusy, SignUp: d.signUp, Zone: time.UTC})
}

// functions are available in all templates. Those that need the view take it as the first argument: $.
func functions(files assets) template.FuncMap {
	return template.FuncMap{
		"asset":    files.url,
		"icon":     files.icon,
		"flag":     files.flag,
		"mark":     mark,
		"color":    markColor,
		"dict":     dict,
		"top":      func(links []topLink, during string) topList { return topList{links, during} },
		"past":     func(at time.Time) bool { return at.Before(time.Now()) },
		"number":   number,
		"counted":  counted,
		"date":     dateText,
		"problem":  newProblem,
		"describe": describe,
	}
}

// When returns a time element in the zone of the page.
func (v view) When(t time.Time) template.HTML { return timeElement(t.In(v.Zone)) }

// dict returns a map of names and values that alternate, for templates that need more than one value.
func dict(pairs ...any) (map[string]any, error) {
	values := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is no name", pairs[i])
		}
		values[name] = pairs[i+1]
	}
	return values, nil
}

// problem is the data of {{template "problem" (problem $ "field")}}, the message below a field.
type problem struct{ ID, Text string }

func newProblem(v view, field string) problem { return problem{field + "-problem", v.Problems[field]} }

// describe returns the ARIA attributes that refer to a field's problem and hints by their IDs.
func describe(v view, field string, hints ...string) template.HTMLAttr {
	invalid := ""
	if v.Problems[field] != "" {
		invalid, hints = ` aria-invalid="true"`, append([]string{field + "-problem"}, hints...)
	}
	if len(hints) == 0 {
		return ""
	}
	ids := template.HTMLEscapeString(strings.Join(hints, " "))
	return template.HTMLAttr(fmt.Sprintf(`aria-describedby="%s"%s`, ids, invalid))
}
