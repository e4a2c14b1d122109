package rest

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/api/sharing"
	"linkstream/api/webhook"
	"linkstream/schema"
)

// body is the JSON object of a request. A field of the wrong type does not fail it: it is noted, and reported together
// with the other invalid fields.
type body struct {
	fields    []member
	malformed map[string][]string

	// emptyIsMissing says that an empty string stands for a missing field, as forms send it: in requests that create
	// something. In an edit it is a value, and null clears a field.
	emptyIsMissing bool
}

// decodeBody decodes the body of a request. An empty one is an object without fields: the request may lack required
// ones, which is an invalid field like any other. JSON may have a byte order mark (RFC 8259, section 8.1).
func decodeBody(c *call) (*body, error) {
	for _, coding := range c.http.Request.Header.PeekAll(fasthttp.HeaderContentEncoding) {
		if coding := string(bytes.TrimSpace(coding)); coding != "" && !strings.EqualFold(coding, "identity") {
			c.http.Response.Header.Set(fasthttp.HeaderAcceptEncoding, "identity") // RFC 7694, section 3
			return nil, errCoding
		}
	}
	b, text, isObject := &body{}, bytes.TrimPrefix(c.http.PostBody(), []byte("\ufeff")), false
	if len(bytes.Trim(text, " \t\r\n")) == 0 {
		return b, nil
	}
	contentType, _, err := mime.ParseMediaType(string(c.http.Request.Header.ContentType()))
	if err != nil || contentType != "application/json" {
		return nil, errType
	}
	if json.Valid(text) {
		b.fields, isObject = appendMembers(nil, string(text))
	}
	if !isObject {
		return nil, errBody
	}
	return b, nil
}

// isField reports whether a request may have a field of this name. Case matters.
func isField(name string) bool {
	switch name {
	case links.FieldLongURL, links.FieldAlias, links.FieldCustomAlias, links.FieldFormerHashes, links.FieldDomainID,
		links.FieldTitle, links.FieldTags, links.FieldIsActive, links.FieldExpiresAt, links.FieldExpiredURL,
		links.FieldForwardQuery, links.FieldRules, links.FieldVariants, links.FieldCard, links.FieldPassword,
		links.FieldMaxClicks, links.FieldPathMode, links.FieldExternalID, links.FieldReuse, links.FieldAddTags,
		links.FieldRemoveTags, fieldLinks, fieldSet, webhook.FieldURL, webhook.FieldEvents, fieldHash, webhook.FieldTag,
		webhook.FieldPeopleOnly, fieldDays, sharing.FieldHideTargets:
		return true
	}
	return false
}

// fieldHash is the hash of a link, of a webhook or in a bulk request.
const fieldHash = webhook.FieldHash

// fieldLinks is the field of a bulk request.
const fieldLinks = "links"

// field returns the JSON text of a field, "" if it is not given.
func (b *body) field(name string) string {
	for i := range b.fields {
		if m := &b.fields[i]; m.name == name && !(b.emptyIsMissing && m.value == `""`) {
			return m.value
		}
	}
	return ""
}

func (b *body) reject(field, problem string) {
	if b.malformed == nil {
		b.malformed = map[string][]string{}
	}
	b.malformed[field] = []string{problem}
}

// Messages for fields of the wrong type.
const (
	badTitle   = "The title must be a string."
	badTags    = "The tags must be an array of strings."
	badActive  = "This must be true or false."
	badExpiry  = "The time of expiry must be an ISO 8601 time with an offset, such as 2030-01-31T12:00:00+01:00, or null."
	badExpired = "The expired URL must be a string or null."
	badLongURL = "The long URL must be a string."
	badAlias   = "The alias must be a string."

	badExternalID = "The external ID must be a string."
	badFormer     = "The former hashes must be an array of strings."
)

// decode decodes a field if it is given. null leaves into unchanged.
func (b *body) decode(field string, into any, problem string) {
	if text := b.field(field); text != "" && json.Unmarshal([]byte(text), into) != nil {
		b.reject(field, problem)
	}
}

// decodeString is decode for strings, which most fields are.
func (b *body) decodeString(field string, into *string, problem string) {
	text := b.field(field)
	if text == "" {
		return
	}
	if plain, ok := plainString(text); ok {
		*into = plain
	} else if json.Unmarshal([]byte(text), into) != nil {
		b.reject(field, problem)
	}
}

// decodeOptional is decode for strings that may be null.
func (b *body) decodeOptional(field string, into **string, problem string) {
	if text := b.field(field); text != "" && !isNull(text) {
		value := new(string)
		if b.decodeString(field, value, problem); b.malformed[field] == nil {
			*into = value
		}
	}
}

// setRequest sets req to the link that the body describes. Null counts as missing.
func (b *body) setRequest(req *links.Request) {
	b.decodeString(links.FieldLongURL, &req.LongURL, badLongURL)
	b.decodeOptional(links.FieldCustomAlias, &req.CustomAlias, badAlias)
	b.decode(links.FieldDomainID, &req.DomainID, badDomainID)
	b.emptyIsMissing = true // in fields of the additions to api-v1
	b.decodeOptional(links.FieldAlias, &req.Alias, badAlias)
	b.decodeString(links.FieldTitle, &req.Title, badTitle)
	if tags := b.strings(links.FieldTags, badTags); tags != nil {
		req.Tags = *tags
	}
	req.ExpiresAt = b.time(links.FieldExpiresAt)
	b.decodeOptional(links.FieldExpiredURL, &req.ExpiredURL, badExpired)
	b.decode(links.FieldForwardQuery, &req.ForwardQuery, badActive)
	b.decodeString(links.FieldExternalID, &req.ExternalID, badExternalID)
	b.decode(links.FieldReuse, &req.Reuse, badActive)
	req.GivesForward = b.field(links.FieldForwardQuery) != "" && !b.isNull(links.FieldForwardQuery)
	req.Behaviour = b.extension()
	req.Malformed = b.malformed
}

// edit returns the change that the body describes. Null clears a field that can be null and is invalid for others.
func (b *body) edit() links.Edit {
	for field, problem := range map[string]string{
		links.FieldLongURL: badLongURL, links.FieldAlias: badAlias, links.FieldFormerHashes: badFormer,
		links.FieldTitle: badTitle, links.FieldTags: badTags,
		links.FieldIsActive: badActive, links.FieldForwardQuery: badActive,
	} {
		if b.isNull(field) {
			b.reject(field, problem)
		}
	}
	var edit links.Edit
	b.decodeOptional(links.FieldLongURL, &edit.LongURL, badLongURL)
	b.decodeOptional(links.FieldTitle, &edit.Title, badTitle)
	b.decodeOptional(links.FieldAlias, &edit.Alias, badAlias)
	edit.FormerHashes = b.strings(links.FieldFormerHashes, badFormer)
	edit.Tags = b.strings(links.FieldTags, badTags)
	b.decode(links.FieldIsActive, &edit.IsActive, badActive)
	b.decode(links.FieldForwardQuery, &edit.ForwardQuery, badActive)
	if edit.ExpiresAt = b.time(links.FieldExpiresAt); b.isNull(links.FieldExpiresAt) {
		edit.ExpiresAt = new(time.Time)
	}
	b.decodeOptional(links.FieldExpiredURL, &edit.ExpiredURL, badExpired)
	switch {
	case b.isNull(links.FieldExpiredURL):
		edit.ExpiredURL = new("")
	case edit.ExpiredURL != nil && *edit.ExpiredURL == "":
		b.reject(links.FieldExpiredURL, "The expired URL must not be empty: null removes it.")
	}
	b.decodeOptional(links.FieldExternalID, &edit.ExternalID, badExternalID)
	switch {
	case b.isNull(links.FieldExternalID):
		edit.ExternalID = new("")
	case edit.ExternalID != nil && *edit.ExternalID == "":
		b.reject(links.FieldExternalID, "The external ID must not be empty: null removes it.")
	}
	edit.Behaviour = b.extension()
	edit.Malformed = b.malformed
	return edit
}

// extension returns the texts of the fields of a behaviour.
func (b *body) extension() links.Behaviour {
	x := links.Behaviour{Rules: b.field(links.FieldRules), Variants: b.field(links.FieldVariants),
		Card:     b.field(links.FieldCard),
		Password: b.field(links.FieldPassword), MaxClicks: b.field(links.FieldMaxClicks),
		PathMode: b.field(links.FieldPathMode)}
	if card := gjson.Parse(x.Card); b.emptyIsMissing && card.IsObject() {
		blank := false // whether no field of the card was filled in
		card.ForEach(func(_, value gjson.Result) bool {
			blank = value.Raw == `""` || value.Raw == "null"
			return blank
		})
		if blank {
			x.Card = ""
		}
	}
	return x
}

func (b *body) isNull(field string) bool { return isNull(b.field(field)) }

func isNull(text string) bool { return text == "null" }

// strings decodes an array of strings, nil if there is none. An element that is null is not a string.
func (b *body) strings(field, problem string) *[]string {
	if b.field(field) == "" {
		return nil
	}
	var elements *[]*string
	b.decode(field, &elements, problem)
	if elements == nil || b.malformed[field] != nil {
		return nil
	}
	all := make([]string, len(*elements))
	for i, element := range *elements {
		if element == nil {
			b.reject(field, problem)
			return nil
		}
		all[i] = *element
	}
	return &all
}

// time decodes a time.
func (b *body) time(field string) *time.Time {
	var text *string
	if b.decodeOptional(field, &text, badExpiry); text == nil {
		return nil
	}
	at, err := schema.ParseTime(*text)
	if err != nil {
		b.reject(field, badExpiry)
		return nil
	}
	return &at
}
