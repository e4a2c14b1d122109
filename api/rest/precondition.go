package rest

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/schema"
)

var (
	errChanged = &httpError{fasthttp.StatusPreconditionFailed, "The link is not as the request expects: read it again.",
		"changed"}
	errTags = &httpError{status: fasthttp.StatusBadRequest, message: "If-Match and If-None-Match must be * or a list of " +
		"tags in double quotes, as in ETag."}
	errNotModified = errors.New("not modified")
)

// tagOf returns the strong entity tag of a link (RFC 9110, section 8.8.3).
func tagOf(link schema.Link) string { return `"` + links.Revision(link) + `"` }

// precondition evaluates If-Match and If-None-Match of a request about a link as RFC 9110, section 13.2.2, says, before
// the body is looked at. The link may change afterwards: if unchanged is true, a change must compare the version, too.
func precondition(http *fasthttp.RequestCtx, link schema.Link) (unchanged bool, err error) {
	match, err := tagsIn(http, fasthttp.HeaderIfMatch)
	if err != nil {
		return false, err
	}
	none, err := tagsIn(http, fasthttp.HeaderIfNoneMatch)
	if err != nil {
		return false, err
	}
	tag, unchanged := tagOf(link), match != nil && match[0] != "*"
	if unchanged && !slices.Contains(match, tag) { // a weak tag never matches here
		return false, errChanged
	}
	if slices.ContainsFunc(none, func(t string) bool { return t == "*" || strings.TrimPrefix(t, "W/") == tag }) {
		if http.IsGet() || http.IsHead() {
			return false, errNotModified
		}
		return false, errChanged
	}
	return unchanged, nil
}

// tagsIn returns the entity tags in a field of a request, weak ones with their W/, or a single "*"; nil without the
// field.
func tagsIn(http *fasthttp.RequestCtx, field string) (tags []string, err error) {
	lines := http.Request.Header.PeekAll(field)
	if len(lines) == 0 {
		return nil, nil
	}
	all := string(bytes.Join(lines, []byte(","))) // one list: RFC 9110, section 5.3
	if strings.Trim(all, " \t") == "*" {
		return []string{"*"}, nil
	}
	for element := all; ; {
		element = strings.TrimLeft(element, " \t")
		if next, empty := strings.CutPrefix(element, ","); empty {
			element = next
			continue
		}
		if element == "" && tags != nil {
			return tags, nil
		}
		opaque, opened := strings.CutPrefix(strings.TrimPrefix(element, "W/"), `"`)
		opaque, rest, closed := strings.Cut(opaque, `"`)
		next := strings.TrimLeft(rest, " \t")
		if !opened || !closed || next != "" && next[0] != ',' ||
			strings.ContainsFunc(opaque, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return nil, errTags
		}
		tags, element = append(tags, element[:len(element)-len(rest)]), next
	}
}

// ifChanged returns errChanged for the outcome of a change that has compared the version and found another one.
func ifChanged(unchanged bool, err error) error {
	if unchanged && schema.ErrorCode(err) == schema.CodeConflict {
		return errChanged
	}
	return err
}
