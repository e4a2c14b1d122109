package assistant

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is one call of a tool.
type session struct {
	tool
	args   arguments
	caller *Caller
}

// failure is an answer of the API that is not a success.
type failure map[string]json.RawMessage

func (f failure) Error() string { return string(f["message"]) }

// invalid returns the failure of an argument, as the API answers for a field.
func invalid(name, format string, args ...any) error {
	return failure{"status": encode(http.StatusUnprocessableEntity), "message": encode("The call has invalid arguments."),
		"errors": encode(map[string][]string{name: {fmt.Sprintf(format, args...)}})}
}

func encode(value any) json.RawMessage {
	raw, _ := json.Marshal(value) // the callers' values can be encoded
	return raw
}

// call runs the tool. Failures of the API are results, which the assistant may react to.
func (t tool) call(c *Caller, raw json.RawMessage) (result *mcp.CallToolResult) {
	c.turn.Lock()
	defer c.turn.Unlock()
	defer func() {
		if cause := recover(); cause != nil {
			c.Failed(cause)
			result = failed(failure{"status": encode(http.StatusInternalServerError),
				"message": encode("Something went wrong on our side.")})
		}
	}()
	s := session{t, arguments{}, c}
	if len(raw) > 0 && string(raw) != "null" && json.Unmarshal(raw, &s.args) != nil {
		return failed(invalid("arguments", "The arguments must be a JSON object."))
	}
	for name := range s.args {
		if !t.takes(name) {
			return failed(invalid(name, "There is no such argument."))
		}
	}
	content, err := t.run(&s)
	if err != nil {
		return failed(err)
	}
	return &mcp.CallToolResult{Content: content}
}

// failed panics if err is no failure.
func failed(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: data(err.(failure))}
}

// do makes the request of an operation. It returns a failure for every answer but a success.
func (s *session) do(o operation, args arguments) (Answer, error) {
	if _, has := o.places[argHash]; has && args.text(argHash) == "" {
		return Answer{}, invalid(argHash, "The hash is required.")
	}
	answer := s.caller.Do(o.request(args))
	if answer.Status/100 == 2 {
		return answer, nil
	}
	f := failure{}
	if json.Unmarshal(answer.Body, &f) != nil {
		f["message"] = encode(http.StatusText(answer.Status))
	}
	f["status"] = encode(answer.Status)
	if answer.RetryAfter != "" {
		f["retry_after"] = encode(answer.RetryAfter)
	}
	return answer, f
}

// plain answers what the API answers.
func (s *session) plain() ([]mcp.Content, error) {
	answer, err := s.do(s.operations[0], s.args)
	return data(json.RawMessage(answer.Body)), err
}

// image answers an image.
func (s *session) image() ([]mcp.Content, error) {
	args := arguments{"format": encode("png")}
	maps.Copy(args, s.args)
	answer, err := s.do(s.operations[0], args)
	return []mcp.Content{&mcp.ImageContent{MIMEType: answer.Type, Data: answer.Body}}, err
}

// find answers links: a page by a cursor, or by its number in an order that has no cursors.
func (s *session) find() ([]mcp.Content, error) {
	args, page := maps.Clone(s.args), 0
	switch args.text("sort") {
	case "", "created_at", "-created_at":
		args[argLimit] = encode(rows)
	default:
		var err error
		if page, err = s.position(1); err != nil {
			return nil, err
		}
		delete(args, argAfter)
		args[argPage] = encode(page)
	}
	answer, err := s.do(s.operations[0], args)
	if err != nil {
		return nil, err
	}
	var list struct {
		Data json.RawMessage
		Meta struct {
			Next     any
			LastPage int `json:"last_page"`
		}
	}
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		return nil, err
	}
	if page > 0 {
		list.Meta.Next = next(page+1, page < list.Meta.LastPage)
	}
	return data(map[string]any{"links": list.Data, "next": list.Meta.Next}), nil
}

// position returns the number in the argument after, or first without one.
func (s *session) position(first int) (int, error) {
	text := s.args.text(argAfter)
	if text == "" {
		return first, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < first || n > 1<<31 {
		return 0, invalid(argAfter, "This is not the next of an answer.")
	}
	return n, nil
}

func next(position int, more bool) any {
	if more {
		return strconv.Itoa(position)
	}
	return nil
}

// data returns a value as the content of an answer.
func data(value any) []mcp.Content {
	return []mcp.Content{&mcp.TextContent{Text: notice}, &mcp.TextContent{Text: plainJSON(encode(value))}}
}

// plainJSON returns the same JSON with all characters escaped that could begin markup, do not show, or change the
// direction of text.
func plainJSON(text []byte) string {
	var out strings.Builder
	for _, r := range string(text) {
		switch {
		case r == '<', r == '>', r == '&', !unicode.IsPrint(r), r == unicode.ReplacementChar,
			unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
