package transfer

import (
	"maps"
	"slices"
	"strings"

	"linkstream/api/links"
	"linkstream/schema"
)

// mapFields are the fields that Options.Map has, and how a row calls them.
var mapFields = map[string]string{
	"alias": links.FieldCustomAlias, links.FieldLongURL: links.FieldLongURL, fieldHost: fieldHost,
	fieldShortURL: fieldShortURL, links.FieldTitle: links.FieldTitle, links.FieldTags: links.FieldTags,
	fieldCreatedAt: fieldCreatedAt, links.FieldExpiresAt: links.FieldExpiresAt, fieldClicks: fieldClicks,
	links.FieldExpiredURL: links.FieldExpiredURL,
}

// MapFields returns the fields that a column can be mapped to.
func MapFields() []string { return slices.Sorted(maps.Keys(mapFields)) }

// columns returns the field that each column is read as. Of several columns for a field the first one is read. The
// columns of opts.Map come first.
func (l layout) columns(names []string, opts Options) ([]Column, error) {
	columns, taken := make([]Column, len(names)), map[string]bool{}
	for i, name := range names {
		columns[i].Name = shortened(printable(name))
	}
	find := func(name string) int {
		return slices.IndexFunc(names, func(other string) bool { return plainName(other) == plainName(name) })
	}
	ignored := make([]bool, len(names))
	for _, name := range opts.Ignore {
		i := find(name)
		if i < 0 {
			return columns, noColumn(name, columns)
		}
		ignored[i] = true
	}
	for _, field := range slices.Sorted(maps.Keys(opts.Map)) {
		i := find(opts.Map[field])
		switch {
		case mapFields[field] == "":
			return columns, schema.ClientErrorf(schema.CodeInvalid, "A column cannot be mapped to %q, but to %s.",
				shortened(printable(field)), strings.Join(MapFields(), ", "))
		case i < 0:
			return columns, noColumn(opts.Map[field], columns)
		case columns[i].Field != "" || ignored[i]:
			return columns, schema.ClientErrorf(schema.CodeInvalid, "The column %s is mapped or ignored twice.",
				columns[i].Name)
		}
		columns[i].Field, taken[mapFields[field]] = mapFields[field], true
	}
	for i, name := range names {
		field := l.fields[plainName(name)]
		if plainName(name) == plainName(fieldHasPassword) {
			field = fieldHasPassword
		}
		if columns[i].Field != "" || ignored[i] || field == "" || taken[field] {
			continue
		}
		columns[i].Field, taken[field] = field, true
	}
	return columns, l.checkColumns(columns, ignored, taken)
}

func noColumn(name string, columns []Column) error {
	var names []string
	for _, column := range columns {
		names = append(names, column.Name)
	}
	return schema.ClientErrorf(schema.CodeInvalid, "The file has no column %s, but %s.", shortened(printable(name)),
		strings.Join(names, ", "))
}

// lookalikes are words in the names of columns that say what a link is about, and what such a column is taken for.
var lookalikes = []struct {
	field, what string
	words       []string // anywhere in a name
	names       []string // the whole of it
}{
	{links.FieldExpiresAt, "the end of a link", []string{"expir", "validto", "validuntil", "deadline"},
		[]string{"end", "ends", "endsat", "enddate", "until", "ttl"}},
	{"alias", "an alias", []string{"alias", "slug", "slashtag", "backhalf", "keyword", "shortcode", "vanity", "ending"},
		[]string{"key", "path", "code", "hash", "short", "handle", "link", "name"}},
	{links.FieldLongURL, "a target", []string{"target", "destination", "redirect", "longurl", "longlink"},
		[]string{"url", "long", "website", "goto", "to"}},
}

// vague are names of columns that are an alias only if no other column is.
var vague = map[string]bool{"link": true, "name": true}

// checkColumns refuses a file with a column that says what a link is about, which the format does not know, and which
// is neither read nor ignored: links would lead elsewhere, end never, or have other addresses. In a file of no known
// service two columns for a field are as doubtful.
func (l layout) checkColumns(columns []Column, ignored []bool, taken map[string]bool) error {
	for i, column := range columns {
		name := plainName(column.Name)
		_, known := l.fields[name]
		for _, like := range lookalikes {
			switch {
			case column.Field != "", ignored[i], known && l.format != Linkstream,
				!slices.Contains(like.names, name) &&
					!slices.ContainsFunc(like.words, func(word string) bool { return strings.Contains(name, word) }),
				vague[name] && (taken[links.FieldCustomAlias] || taken[fieldShortURL]):
				continue
			}
			advice := "Say that it is (" + like.field + "), or ignore it."
			if taken[mapFields[like.field]] {
				advice = "Another column is read as " + like.field + ": choose one of them, and ignore the other."
			}
			return schema.ClientErrorf(schema.CodeInvalid, "The column %s looks like %s, and is not read. %s", column.Name,
				like.what, advice)
		}
	}
	return nil
}
