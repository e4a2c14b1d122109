package assistant

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// body is the body of a report.
type body map[string]json.RawMessage

// keep returns fields of a report.
func (b body) keep(names ...string) map[string]any {
	kept := map[string]any{}
	for _, name := range names {
		if value, has := b[name]; has {
			kept[name] = value
		}
	}
	return kept
}

// head are the fields that say what a report counts.
var head = []string{argHash, "from", "to", "tz"}

// read makes the request of a report with a limit of names.
func (s *session) read(o operation, args arguments, names int) (b body, err error) {
	args = maps.Clone(args)
	args[argLimit] = encode(names)
	answer, err := s.do(o, args)
	if err == nil {
		err = json.Unmarshal(answer.Body, &b)
	}
	return b, err
}

// report answers totals and the first name of each list, or a part of one list.
func (s *session) report() ([]mcp.Content, error) {
	operation := s.operations[1]
	if s.args.text(argHash) != "" {
		operation = s.operations[0]
	}
	for name := range s.args {
		if _, takes := operation.places[name]; !takes && name != argList && name != argAfter && s.args.text(name) != "" {
			return nil, invalid(name, "A report of one link does not take this.")
		}
	}
	list, position, err := s.asked()
	if err != nil {
		return nil, err
	}
	b, err := s.read(operation, s.args, min(position+rows+1, 1000))
	if err != nil {
		return nil, err
	}
	answer := b.keep(append(head, "interval", "counted_until", "totals", "previous")...)
	if list == "" {
		answer["top"] = b.top(s.lists)
		return data(answer), nil
	}
	var items []json.RawMessage
	if raw, has := b[list]; !has || json.Unmarshal(raw, &items) != nil {
		return nil, invalid(argList, "This report has no such list.")
	}
	begin, end := min(position, len(items)), min(position+rows, len(items))
	answer[list], answer["next"] = items[begin:end], next(end, end < len(items))
	return data(answer), nil
}

// asked returns the list that is asked for and its first row.
func (s *session) asked() (list string, position int, err error) {
	list = s.args.text(argList)
	if list != "" && !slices.Contains(s.lists, list) {
		return "", 0, invalid(argList, "The list must be one of %s.", strings.Join(s.lists, ", "))
	}
	position, err = s.position(0)
	if err == nil && list == "" && position > 0 {
		err = invalid(argList, "The list that next belongs to is required.")
	}
	return list, position, err
}

// top returns the first item of each list that is sorted by clicks.
func (b body) top(lists []string) map[string]any {
	first := map[string]any{}
	for _, list := range lists {
		var items []map[string]json.RawMessage
		if json.Unmarshal(b[list], &items) == nil && len(items) > 0 && items[0]["clicks"] != nil {
			first[list] = items[0]
		}
	}
	return first
}

// compare answers the totals of several links.
func (s *session) compare() ([]mcp.Content, error) {
	var links []arguments
	if json.Unmarshal(s.args[argLinks], &links) != nil || len(links) < 2 || len(links) > maxCompared {
		return nil, invalid(argLinks, "The links must be an array of 2 to %d objects with a hash.", maxCompared)
	}
	var answer map[string]any
	compared := make([]map[string]any, len(links))
	for i, link := range links {
		args := maps.Clone(s.args)
		delete(args, argLinks)
		args[argHash], args["domain_id"] = link[argHash], link["domain_id"]
		b, err := s.read(s.operations[0], args, 1)
		if f, refused := err.(failure); refused {
			f["link"] = encode(i)
		}
		if err != nil {
			return nil, err
		}
		answer = b.keep(head[1:]...)
		compared[i] = b.keep(argHash, "totals", "previous")
	}
	answer[argLinks] = compared
	return data(answer), nil
}
