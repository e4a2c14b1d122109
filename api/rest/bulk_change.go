package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/schema"
)

// fieldSet is the field of an edit of many links, which has the fields of an edit of one.
const fieldSet = "set"

// editLinks answers POST /api/v1/links/bulk/edit.
func (a *API) editLinks(c *call) error { return a.changeLinks(c, (*body).bulkEdit) }

// deleteLinks answers POST /api/v1/links/bulk/delete.
func (a *API) deleteLinks(c *call) error {
	return a.changeLinks(c, func(*body) *links.Edit { return nil })
}

// changeLinks makes the same change of each link of the request.
func (a *API) changeLinks(c *call, decode func(*body) *links.Edit) error {
	return a.once(c, fasthttp.StatusOK, func(record *links.Record) error {
		b, err := decodeBody(c)
		if err != nil {
			return err
		}
		names, err := b.linkNames()
		if err != nil {
			return err
		}
		edit := decode(b)
		if err := a.countLinks(c, len(names)); err != nil {
			return err
		}
		if record != nil {
			record.Answer = func(results []links.Result) ([]byte, error) {
				var text bytes.Buffer
				err := encode(&text, newChanges(results))
				return compress(text.Bytes()), err
			}
		}
		c.setDeadline(bulkTimeout)
		results, err := a.shortener.ChangeAll(c.ctx, c.account, names, edit, record)
		if err != nil {
			return withOutage("Links cannot be changed", ofSet(err))
		}
		return answer(c.http, fasthttp.StatusOK, newChanges(results))
	})
}

// linkNames decodes the links of a request that changes many.
func (b *body) linkNames() ([]links.LinkName, error) {
	elements, isArray := appendElements(nil, b.field(fieldLinks), maxBulk)
	if !isArray || len(elements) == 0 || len(elements) > maxBulk {
		return nil, invalidField(fieldLinks, "The links must be an array of 1 to 1000 objects.")
	}
	names := make([]links.LinkName, len(elements))
	for i, element := range elements {
		fields, isObject := appendMembers(nil, element)
		of, name := &body{fields: fields}, &names[i]
		if !isObject {
			of.reject("", "The link must be an object.")
		} else if of.decodeString(fieldHash, &name.Hash, "The hash must be a string."); name.Hash == "" {
			of.reject(fieldHash, "The hash must be a string.")
		}
		of.decode(links.FieldDomainID, &name.DomainID, "The domain id must be an integer, or null for the default domain.")
		if of.isNull(links.FieldDomainID) {
			name.DomainID = new(int64)
		}
		name.Malformed = of.malformed
	}
	return names, nil
}

// bulkEdit decodes the edit of many links.
func (b *body) bulkEdit() *links.Edit {
	set := &body{}
	isObject := true
	if text := b.field(fieldSet); text != "" {
		set.fields, isObject = appendMembers(nil, text)
	}
	edit := set.edit()
	if edit.ExternalID != nil && *edit.ExternalID != "" {
		set.reject(links.FieldExternalID, "An external ID belongs to one link: here it can only be removed, by null.")
	}
	edit.AddTags, edit.RemoveTags = b.someTags(links.FieldAddTags), b.someTags(links.FieldRemoveTags)
	edit.Malformed = map[string][]string{}
	for field, problems := range set.malformed {
		edit.Malformed[field] = problems
	}
	for field, problems := range b.malformed {
		edit.Malformed[field] = problems
	}
	if !isObject {
		edit.Malformed[fieldSet] = []string{"This must be an object with fields of a link."}
	}
	return &edit
}

// someTags decodes an array of up to schema.MaxTags tags.
func (b *body) someTags(field string) []string {
	const problem = "This must be an array of at most 10 tags."
	var tags []string
	if b.decode(field, &tags, problem); b.isNull(field) || len(tags) > schema.MaxTags {
		b.reject(field, problem)
	}
	return tags
}

// ofSet names the invalid fields of an edit as the request does.
func ofSet(err error) error {
	var e *schema.Error
	if !errors.As(err, &e) || e.Code != schema.CodeInvalid || len(e.Fields) == 0 {
		return err
	}
	named := *e
	named.Fields = make(map[string][]string, len(e.Fields))
	for field, problems := range e.Fields {
		named.Fields[inSet(field)] = problems
	}
	return &named
}

func inSet(field string) string {
	switch field {
	case links.FieldAddTags, links.FieldRemoveTags, fieldSet:
		return field
	case links.FieldBody:
		return fieldSet
	}
	return fieldSet + "." + field
}

// changes is the answer to a request that changes many links.
type changes struct {
	Success bool         `json:"success"`
	Changed int          `json:"changed"`
	Failed  int          `json:"failed"`
	Results []linkChange `json:"results"`
}

// linkChange is what became of one of the links.
type linkChange struct {
	Success  bool            `json:"success"`
	Hash     string          `json:"hash,omitempty"`
	DomainID json.RawMessage `json:"domain_id,omitempty"` // of a link that has changed
	*failure
}

func newChanges(results []links.Result) changes {
	all := changes{Success: true, Results: make([]linkChange, len(results))}
	for i, result := range results {
		if result.Err != nil {
			all.Failed++
			all.Results[i].failure = new(newBulkFailure(i, result.Err).failure)
			continue
		}
		all.Changed++
		domain := json.RawMessage("null")
		if id := result.Link.DomainID; id != 0 {
			domain = strconv.AppendInt(nil, id, 10)
		}
		all.Results[i] = linkChange{Success: true, Hash: result.Link.Hash, DomainID: domain}
	}
	return all
}
