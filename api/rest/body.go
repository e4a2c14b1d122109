package rest

import (
	"encoding/json"
	"mime"
	"time"

	"linkstream/api/shorten"
)

// body is the JSON object of a request. A field of the wrong type does not fail it: it is noted, and reported together with
// the other invalid fields.
type body struct {
	fields    map[string]json.RawMessage // a map, because encoding/json matches struct fields regardless of case
	malformed map[string][]string
}

// decodeBody decodes the body of a request.
func decodeBody(c *call) (*body, error) {
	contentType, _, err := mime.ParseMediaType(string(c.http.Request.Header.ContentType()))
	if err != nil || contentType != "application/json" {
		return nil, errType
	}
	b := &body{malformed: map[string][]string{}}
	if err := json.Unmarshal(c.http.PostBody(), &b.fields); err != nil || b.fields == nil {
		return nil, errBody
	}
	return b, nil
}

// What is wrong with fields of other types.
const (
	badTitle   = "The title must be a string."
	badTags    = "The tags must be an array of strings."
	badActive  = "This must be true or false."
	badExpiry  = "The time of expiry must be an ISO 8601 time with an offset, such as 2030-01-31T12:00:00+01:00, or null."
	badExpired = "The expired URL must be a string or null."
	badLongURL = "The long URL must be a string."
)

// decode decodes a field if it is given. What is null leaves into as it is.
func (b *body) decode(field string, into any, problem string) {
	if raw, given := b.fields[field]; given && json.Unmarshal(raw, into) != nil {
		b.malformed[field] = []string{problem}
	}
}

// request returns the link that the body describes. Null counts as missing.
func (b *body) request() shorten.Request {
	req := shorten.Request{Malformed: b.malformed}
	b.decode(shorten.FieldLongURL, &req.LongURL, badLongURL)
	b.decode(shorten.FieldCustomAlias, &req.CustomAlias, "The alias must be a string.")
	b.decode(shorten.FieldDomainID, &req.DomainID, "The domain id must be an integer.")
	b.decode(shorten.FieldTitle, &req.Title, badTitle)
	if tags := b.tags(); tags != nil {
		req.Tags = *tags
	}
	req.ExpiresAt = b.time(shorten.FieldExpiresAt)
	b.decode(shorten.FieldExpiredURL, &req.ExpiredURL, badExpired)
	b.decode(shorten.FieldForwardQuery, &req.ForwardQuery, badActive)
	return req
}

// edit returns the change that the body describes. Null clears a field that can be null and is invalid for others.
func (b *body) edit() shorten.Edit {
	for field, problem := range map[string]string{
		shorten.FieldLongURL: badLongURL, shorten.FieldTitle: badTitle, shorten.FieldTags: badTags,
		shorten.FieldIsActive: badActive, shorten.FieldForwardQuery: badActive,
	} {
		if b.isNull(field) {
			b.malformed[field] = []string{problem}
		}
	}
	edit := shorten.Edit{Malformed: b.malformed}
	b.decode(shorten.FieldLongURL, &edit.LongURL, badLongURL)
	b.decode(shorten.FieldTitle, &edit.Title, badTitle)
	edit.Tags = b.tags()
	b.decode(shorten.FieldIsActive, &edit.IsActive, badActive)
	b.decode(shorten.FieldForwardQuery, &edit.ForwardQuery, badActive)
	if edit.ExpiresAt = b.time(shorten.FieldExpiresAt); b.isNull(shorten.FieldExpiresAt) {
		edit.ExpiresAt = new(time.Time)
	}
	b.decode(shorten.FieldExpiredURL, &edit.ExpiredURL, badExpired)
	switch {
	case b.isNull(shorten.FieldExpiredURL):
		edit.ExpiredURL = new("")
	case edit.ExpiredURL != nil && *edit.ExpiredURL == "":
		b.malformed[shorten.FieldExpiredURL] = []string{"The expired URL must not be empty: null removes it."}
	}
	return edit
}

func (b *body) isNull(field string) bool { return string(b.fields[field]) == "null" }

// tags decodes the tags. An element that is null is not a string.
func (b *body) tags() *[]string {
	var elements *[]*string
	b.decode(shorten.FieldTags, &elements, badTags)
	if elements == nil || b.malformed[shorten.FieldTags] != nil {
		return nil
	}
	tags := make([]string, len(*elements))
	for i, element := range *elements {
		if element == nil {
			b.malformed[shorten.FieldTags] = []string{badTags}
			return nil
		}
		tags[i] = *element
	}
	return &tags
}

// time decodes a time.
func (b *body) time(field string) *time.Time {
	var text *string
	b.decode(field, &text, badExpiry)
	if text == nil || b.malformed[field] != nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		b.malformed[field] = []string{badExpiry}
		return nil
	}
	return &at
}
