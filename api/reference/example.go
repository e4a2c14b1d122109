package reference

import (
	_ "embed"
	"encoding/json"
	"net/url"
	"strings"
	"text/template"
)

// Example is a program that calls an operation, complete as it is pasted. Its token is in the environment.
type Example struct {
	Language, Title string
	Text            Code
}

//go:embed examples.tmpl
var exampleText string

var exampleTemplates = template.Must(template.New("").
	Funcs(template.FuncMap{"shell": shellQuote, "indent": indent}).Parse(exampleText))

// languages are the languages of examples, with the names of their templates.
var languages = []string{"curl", "Go", "Python", "TypeScript"}

// call is the request of an example.
type call struct {
	Method, URL, Body string
	Open, Stream      bool
}

// examples returns programs that call an operation: in all languages for the first body, and by curl for the others.
func (o operation) examples(op Operation, base string) (all []Example, err error) {
	c := call{Method: op.Method, URL: base + exampleTarget(op), Open: op.Open}
	for _, answer := range op.Answers {
		for _, t := range answer.Types {
			c.Stream = c.Stream || t.Before == "text/event-stream"
		}
	}
	add := func(language, title string) {
		var text strings.Builder
		if err == nil {
			err = exampleTemplates.ExecuteTemplate(&text, language, c)
		}
		all = append(all, Example{language, title, Code(strings.TrimSpace(text.String()))})
	}
	var titles []string
	var bodies []json.RawMessage
	if o.RequestBody != nil {
		for _, content := range o.RequestBody.Content.all {
			for _, e := range content.Examples.all {
				titles, bodies = append(titles, e.Summary), append(bodies, e.Value)
			}
		}
	}
	if len(bodies) > 0 {
		c.Body = indented(bodies[0])
	}
	for _, language := range languages {
		add(language, "")
	}
	for i := 1; i < len(bodies); i++ {
		c.Body = indented(bodies[i])
		add(languages[0], titles[i])
	}
	return all, err
}

// exampleTarget returns the path and the query of an operation with the examples of the parameters that it requires.
func exampleTarget(op Operation) string {
	target, query := op.Path, url.Values{}
	for _, p := range op.Parameters {
		switch {
		case p.In == "path":
			target = strings.ReplaceAll(target, "{"+p.Name+"}", url.PathEscape(string(p.Example)))
		case p.In == "query" && p.Required:
			query.Set(p.Name, string(p.Example))
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target
}

// shellQuote returns s as a word of a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// indent indents the lines of s after the first one.
func indent(by, s string) string { return strings.ReplaceAll(s, "\n", "\n"+by) }
