package transfer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"linkstream/api/links"
	"linkstream/schema"
)

// Format is the layout of a file.
type Format string

// The formats, see the package's documentation.
const (
	Linkstream Format = "linkstream"
	Shlink     Format = "shlink"
	Kutt       Format = "kutt"
	YOURLS     Format = "yourls"
	Bitly      Format = "bitly"
)

// Formats returns all formats.
func Formats() []Format { return []Format{Linkstream, Shlink, Kutt, YOURLS, Bitly} }

// ParseFormat returns the format with that name, or "" for "". CodeInvalid if there is none.
func ParseFormat(name string) (Format, error) {
	if name == "" || slices.Contains(Formats(), Format(name)) {
		return Format(name), nil
	}
	return "", schema.ClientErrorf(schema.CodeInvalid,
		"The format %q is not known. Formats are linkstream, shlink, kutt, yourls and bitly.", name)
}

// The fields of a row that links.Request does not have.
const (
	fieldHost      = "domain"
	fieldShortURL  = "short_url"
	fieldCustomURL = "custom_short_url" // takes the place of short_url
	// fieldCustomURLs has several custom_short_url, each of which becomes a link.
	fieldCustomURLs = "custom_short_urls"
	fieldCreatedAt  = "created_at"
	fieldClicks     = "clicks"
	fieldBanned     = "banned"
	fieldPassword   = links.FieldPassword
	// fieldHasPassword says that the link has a password, which no export knows.
	fieldHasPassword = "has_password"
)

// layout says how the columns of a format are called, after plainName.
type layout struct {
	format Format
	needs  [][]string        // sets of columns; a file has all columns of one set
	fields map[string]string // by column
}

// layouts are tried in this order, the more particular ones first.
var layouts = []layout{
	{Kutt, [][]string{{"address", "target"}}, map[string]string{
		"address": links.FieldCustomAlias, "target": links.FieldLongURL, "domain": fieldHost,
		"description": links.FieldTitle,
		"link":        fieldShortURL,
		"createdat":   fieldCreatedAt, "expirein": links.FieldExpiresAt, "banned": fieldBanned, "password": fieldPassword,
		"visitcount": fieldClicks,
	}},
	{YOURLS, [][]string{{"keyword", "url"}, {"source", "target"}}, map[string]string{
		"keyword": links.FieldCustomAlias, "url": links.FieldLongURL, "title": links.FieldTitle,
		"timestamp": fieldCreatedAt,
		"clicks":    fieldClicks, "source": links.FieldCustomAlias, "target": links.FieldLongURL, "hits": fieldClicks,
	}},
	{Shlink, [][]string{{"shortcode", "longurl"}}, map[string]string{
		"shortcode": links.FieldCustomAlias, "longurl": links.FieldLongURL, "domain": fieldHost,
		"shorturl": fieldShortURL,
		"title":    links.FieldTitle, "tags": links.FieldTags, "createdat": fieldCreatedAt, "visits": fieldClicks,
	}},
	{Bitly, [][]string{{"link", "destinationurl"}, {"link", "longurl"}, {"bitlink", "destinationurl"},
		{"bitlink", "longurl"},
		{"custombitlink", "longurl"}, {"custombitlinks", "longurl"}}, map[string]string{
		"link": fieldShortURL, "bitlink": fieldShortURL, "customlink": fieldCustomURL, "custombitlink": fieldCustomURL,
		"custombitlinks": fieldCustomURLs,
		"destinationurl": links.FieldLongURL, "longurl": links.FieldLongURL, "title": links.FieldTitle,
		"tags":        links.FieldTags,
		"keywordlink": fieldCustomURL, "datecreated": fieldCreatedAt, "createdat": fieldCreatedAt, "created": fieldCreatedAt,
		"engagements": fieldClicks, "clicks": fieldClicks, "totalclicks": fieldClicks,
	}},
	{Linkstream, [][]string{{"longurl"}, {"url"}, {"originalurl"}}, map[string]string{
		"longurl": links.FieldLongURL, "url": links.FieldLongURL, "originalurl": links.FieldLongURL,
		"alias": links.FieldCustomAlias, "customalias": links.FieldCustomAlias, "hash": links.FieldCustomAlias,
		"shortcode": links.FieldCustomAlias, "keyword": links.FieldCustomAlias,
		"domain": fieldHost, "shorturl": fieldShortURL, "bitlink": fieldShortURL,
		"shortlink": fieldShortURL, "title": links.FieldTitle, "tags": links.FieldTags,
		"isactive": links.FieldIsActive, "createdat": fieldCreatedAt, "expiresat": links.FieldExpiresAt,
		"expiredurl": links.FieldExpiredURL, "forwardquery": links.FieldForwardQuery, "clicks": fieldClicks,
		"rules": links.FieldRules, "variants": links.FieldVariants, "card": links.FieldCard,
		"maxclicks": links.FieldMaxClicks, "formerhashes": fieldFormer,
		"password": links.FieldPassword, "haspassword": fieldHasPassword,
		"pathmode": links.FieldPathMode,
	}},
}

// plainName returns the name of a column as layouts have it.
func plainName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == ' ' || r == '_' || r == '-' {
			return -1
		}
		return r
	}, strings.TrimSpace(name)))
}

// recognize returns the layout of a file with these columns. wanted is its format, or "".
func recognize(names []string, wanted Format) (layout, bool) {
	plain := make([]string, len(names))
	for i, name := range names {
		plain[i] = plainName(name)
	}
	for _, l := range layouts {
		if wanted != "" && l.format != wanted {
			continue
		}
		for _, needed := range l.needs {
			if !slices.ContainsFunc(needed, func(name string) bool { return !slices.Contains(plain, name) }) {
				return l, true
			}
		}
	}
	return layout{}, false
}

// printable returns the name of a column for a message: in UTF-8, without control characters.
func printable(name string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return '?'
		}
		return r
	}, name))
}

// columns returns the field that each column is read as. Of several columns for a field the first one is read.
func (l layout) columns(names []string) []Column {
	columns, taken := make([]Column, len(names)), map[string]bool{}
	for i, name := range names {
		field := l.fields[plainName(name)]
		if taken[field] {
			field = ""
		}
		taken[field] = true
		columns[i] = Column{Name: shortened(printable(name)), Field: field}
	}
	return columns
}
