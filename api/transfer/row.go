package transfer

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"linkstream/api/csvfile"
	"linkstream/api/links"
	"linkstream/schema"
)

// The notes about rows that are changed.
const (
	noteClicks    = "Clicks are counted as imported ones, on the day on which the link was made: see reports."
	noteCounted   = "Clicks on links that are here already, and have clicks here, are not added to them."
	noteSources   = "A link has clicks of five other services already: those of this file are left out."
	noteNumber    = "A count of clicks that is no number, or above a billion, is left out."
	noteCreatedAt = "A time of creation that cannot be read, is in the future or before 1990 is replaced by that of the " +
		"import."
	noteTitle   = "A title is cut to 200 characters, and its line breaks become spaces."
	noteTags    = "Tags become lower-case letters, digits, _ and -, at most 32 characters each."
	noteAlias   = "A row without an alias gets a random-looking one, and always the same for its long URL."
	noteExpired = "A link whose time of expiry has passed is created as one that has expired."
	noteBanned  = "A link that is banned is created as one that is switched off."
)

// item is a row on its way to a link.
type item struct {
	line    int
	request links.Request
	host    string // in canonical form; "" if the row has none
	alias   string // that of the row, "" if it has none
	former  []string
	clicks  int64
	link    schema.Link // that was created, or is present
	notes   []string
	errors  []RowError // what CreateAll cannot find: the row is not created

	outcome Outcome
	attempt int   // of derivedHash, for a row without an alias
	refused error // the last error of CreateAll that may be because of the alias
}

// fields are the cells of a record by their field.
type fields map[string]string

// maxCustom bounds the links of one record.
const maxCustom = 20

// items returns the links that a record describes: one, or one for each of its custom short URLs.
func (r *reader) items(rec record, now time.Time) []*item {
	all := []*item{r.item(rec, now, 0)}
	for n := 1; n < min(len(customURLs(r.cells)), maxCustom); n++ {
		all = append(all, r.item(rec, now, n))
	}
	return all
}

// customURLs returns the custom short URLs of a record, which may be a JSON array or a list.
func customURLs(cells fields) []string {
	return strings.FieldsFunc(cells[fieldCustomURLs], func(r rune) bool {
		return strings.ContainsRune("[]\"'|,; \t\n", r)
	})
}

// item returns the nth link that a record describes. Cells that cannot be read are in the request's Malformed.
func (r *reader) item(rec record, now time.Time, n int) *item {
	cells := r.cells // of the last row
	clear(cells)
	for i, column := range r.columns {
		if column.Field == "" {
			continue
		}
		cell := rec.cells[i]
		if r.layout.format == Linkstream && r.separator != 0 {
			cell = csvfile.Unguard(cell)
		}
		asItIs := column.Field == links.FieldTitle || column.Field == fieldPassword
		if r.layout.format != Linkstream || !asItIs {
			cell = strings.TrimSpace(cell)
		}
		if r.layout.format == Dub && cell == "null" {
			cell = ""
		}
		cells[column.Field] = cell
	}
	if custom := customURLs(cells); n < len(custom) {
		cells[fieldCustomURL] = custom[n]
	}
	it := &item{line: rec.line}
	it.request = links.Request{LongURL: cells[links.FieldLongURL], KeepHash: true, MayBeExpired: true}
	it.address(cells)
	it.text(cells, r.layout.format)
	it.times(cells, now)
	it.switches(cells)
	if expired := cells[links.FieldExpiredURL]; expired != "" {
		it.request.ExpiredURL = &expired
	}
	it.request.Behaviour = links.Behaviour{Rules: cells[links.FieldRules], Variants: cells[links.FieldVariants],
		Card: cells[links.FieldCard], MaxClicks: cells[links.FieldMaxClicks]}
	if mode := cells[links.FieldPathMode]; mode != "" {
		it.request.Behaviour.PathMode = strconv.Quote(mode)
	}
	it.former = strings.Fields(cells[fieldFormer])
	it.request.ExternalID = cells[links.FieldExternalID]
	it.password(cells, r.layout.format)
	if it.alias == "" && it.request.Malformed[links.FieldCustomAlias] == nil {
		it.note(noteAlias)
	}
	if n == 0 { // the clicks of several links are told as one number
		it.countClicks(cells)
	}
	return it
}

// countClicks reads the clicks of a row.
func (it *item) countClicks(cells fields) {
	text := strings.TrimSuffix(cells[fieldClicks], ".0")
	if text == "" || text == "null" {
		return
	}
	clicks, err := strconv.ParseInt(text, 10, 64)
	if err != nil || clicks < 0 || clicks > schema.MaxImportedClicks {
		it.note(noteNumber)
		return
	}
	it.clicks = clicks
}

func (it *item) note(text string) { it.notes = append(it.notes, text) }

// malformed notes the problem of a field, which CreateAll reports together with its own.
func (it *item) malformed(field, problem string) {
	if it.request.Malformed == nil {
		it.request.Malformed = map[string][]string{}
	}
	it.request.Malformed[field] = []string{problem}
}

// address finds the host and the alias of a row: in their columns, else in its short URL. A short URL that names no
// alias is a problem of the row, because a link with another address would not be the one that is in use.
func (it *item) address(cells fields) {
	address, alias := cells[fieldShortURL], cells[links.FieldCustomAlias]
	if custom := cells[fieldCustomURL]; custom != "" {
		address = custom
	}
	if strings.Contains(alias, "://") {
		address, alias = alias, ""
	}
	host, hasHost := cells[fieldHost]
	urlHost, inURL := csvfile.SplitShortURL(address)
	if !hasHost {
		host = urlHost
	}
	if it.alias = csvfile.Alias(alias); it.alias == "" {
		it.alias = inURL
	}
	if address != "" && it.alias == "" {
		it.malformed(links.FieldCustomAlias, "The short URL has no alias.")
	}
	if host, _ = schema.CutPort(host); host == "" {
		return
	}
	parsed, err := schema.ParseHost(host)
	if err != nil {
		it.malformed(links.FieldDomainID, "The domain is not a valid host.")
		return
	}
	it.host = string(parsed)
}

// text reads title and tags.
func (it *item) text(cells fields, format Format) {
	title := cmp.Or(cells[links.FieldTitle], cells[fieldCardTitle])
	given := title
	if strings.ContainsFunc(title, unicode.IsControl) {
		title = strings.Join(strings.FieldsFunc(title, func(r rune) bool {
			return unicode.IsControl(r) || unicode.IsSpace(r)
		}), " ")
	}
	if utf8.RuneCountInString(title) > schema.MaxTitleLen {
		title = strings.TrimSpace(string([]rune(title)[:schema.MaxTitleLen]))
	}
	if title != given {
		it.note(noteTitle)
	}
	it.request.Title = title

	separators := "|,; \t\n"
	if format != Linkstream { // whose tags may have spaces
		separators = "|,;\n"
	}
	changed := false
	separates := func(r rune) bool { return strings.ContainsRune(separators, r) }
	for tag := range strings.FieldsFuncSeq(cells[links.FieldTags], separates) {
		valid := strings.TrimSpace(tag)
		if format != Linkstream {
			valid = validTag(valid)
		}
		changed = changed || valid != strings.TrimSpace(tag)
		if valid != "" && !slices.Contains(it.request.Tags, valid) && len(it.request.Tags) <= schema.MaxTags {
			it.request.Tags = append(it.request.Tags, valid)
		}
	}
	if changed {
		it.note(noteTags)
	}
}

// validTag returns the valid tag that is closest to a tag of another service, "" if no character of it can stay.
func validTag(tag string) string {
	words := strings.FieldsFunc(strings.ToLower(tag), func(r rune) bool {
		return r >= utf8.RuneSelf || r != '_' && !schema.ValidTag(string(r))
	})
	valid := strings.Join(words, "-")
	return strings.TrimRight(valid[:min(len(valid), schema.MaxTagLen)], "-")
}

// timeLayouts are the layouts in the formats beside those that schema.ParseTime reads: ISO 8601 without a zone, SQL's,
// and spreadsheets'. A time without a zone is in UTC.
var timeLayouts = []string{
	"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05", "2006-01-02 15:04",
	"2006-01-02", "20060102",
}

func parseTime(text string) (time.Time, bool) {
	// Unix time, if it is late enough: 20260131 is a date.
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= earliest.Unix() {
		if n > 1e11 {
			return time.UnixMilli(n).UTC(), true
		}
		return time.Unix(n, 0).UTC(), true
	}
	if at, err := schema.ParseTime(text); err == nil {
		return at.UTC(), true
	}
	for _, layout := range timeLayouts {
		// time.Parse would know the abbreviations of the zone that this machine is in.
		if at, err := time.ParseInLocation(layout, text, time.UTC); err == nil {
			if name, offset := at.Zone(); offset == 0 && name != "" && name != "UTC" && name != "GMT" {
				return time.Time{}, false // an abbreviation that Go does not know stands for no offset
			}
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// earliest is before the first short link: earlier times are mistakes, such as zero values.
var earliest = time.Date(1990, time.January, 1, 0, 0, 0, 0, time.UTC)

func (it *item) times(cells fields, now time.Time) {
	if text := cells[fieldCreatedAt]; text != "" {
		at, ok := parseTime(text)
		if ok && !at.After(now) && at.After(earliest) {
			it.request.CreatedAt = at
		} else {
			it.note(noteCreatedAt)
		}
	}
	if text := cells[links.FieldExpiresAt]; text != "" && text != "0" && text != "null" {
		at, ok := parseTime(text)
		if !ok || at.Before(earliest) {
			it.malformed(links.FieldExpiresAt, "The time of expiry must be like 2030-12-31T23:59:59+00:00.")
			return
		}
		it.request.ExpiresAt = &at
		if !at.After(now) {
			it.note(noteExpired)
		}
	}
}

// switches reads what is true or false.
func (it *item) switches(cells fields) {
	parse := func(field string, unset bool) bool {
		switch strings.ToLower(cells[field]) {
		case "":
			return unset
		case "true", "t", "1", "yes", "on":
			return true
		case "false", "f", "0", "no", "off":
			return false
		}
		it.malformed(field, "The value must be true or false.")
		return unset
	}
	it.request.ForwardQuery = parse(links.FieldForwardQuery, false)
	it.request.Inactive = !parse(links.FieldIsActive, true)
	if disabled := cells[fieldDisabledAt]; parse(fieldBanned, false) || disabled != "" && disabled != "null" {
		it.request.Inactive = true
		it.note(noteBanned)
	}
}

// password reads the password of a link. A link whose password is not known is not created, since it would be open to
// everyone.
func (it *item) password(cells fields, format Format) {
	password, has := cells[fieldPassword], cells[fieldHasPassword]
	if format != Linkstream { // Kutt's API says true or false, its table has a hash of the password
		password, has = "", cmp.Or(password, has)
	}
	if !slices.Contains([]string{"", "false", "f", "0", "null", "no"}, strings.ToLower(has)) && password == "" {
		it.malformed(fieldPassword, "The link is protected by a password, and would be open to everyone here.")
	}
	if password != "" {
		text, _ := json.Marshal(password) // a string can be encoded
		it.request.Password = string(text)
	}
}
