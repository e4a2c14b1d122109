package rest

import (
	"errors"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/schema"
)

// Limits of a bulk request.
const (
	maxBulk         = schema.MaxLinkBatch // links
	maxBulkBody     = 4 << 20             // bytes
	maxPasswords    = 100                 // different ones, each of which takes 20 ms of CPU to hash
	linksPerRequest = 100                 // of the rate limit
)

type bulkFailure struct {
	Success bool `json:"success"`
	failure
}

// createLinks answers POST /api/v1/links/bulk.
func (a *API) createLinks(c *call) error {
	return a.once(c, fasthttp.StatusOK, func(record *links.Record) error {
		bulk, err := decodeBulk(c)
		if err != nil {
			return err
		}
		if err := a.countLinks(c, len(bulk.reqs)); err != nil {
			return err
		}
		var text []byte // of the answer; it may have megabytes, so it is encoded once
		if record != nil {
			record.Answer = func(results []links.Result) ([]byte, error) {
				text = a.appendBulkAnswer(text[:0], bulk, results)
				return compress(text), nil
			}
		}
		c.setDeadline(bulkTimeout)
		results, err := a.shortener.CreateOnce(c.ctx, bulk.reqs, record)
		if err == nil && record == nil {
			text = a.appendBulkAnswer(nil, bulk, results)
		}
		if err != nil {
			return withOutage(creatingLinks, err)
		}
		answerText(c.http, fasthttp.StatusOK, text)
		return nil
	})
}

// bulk is the links of a bulk request.
type bulk struct {
	reqs      []links.Request
	malformed []bool // elements that are not objects
}

func decodeBulk(c *call) (bulk, error) {
	b, err := decodeBody(c)
	if err != nil {
		return bulk{}, err
	}
	elements, isArray := appendElements(nil, b.field(fieldLinks), maxBulk)
	if !isArray || len(elements) == 0 || len(elements) > maxBulk {
		return bulk{}, invalidField(fieldLinks, "The links must be an array of 1 to 1000 objects.")
	}
	list := bulk{make([]links.Request, len(elements)), make([]bool, len(elements))}
	passwords := map[string]bool{}
	var fields []member // of an element at a time
	for i, element := range elements {
		var isObject bool
		fields, isObject = appendMembers(fields[:0], element)
		list.malformed[i] = !isObject
		list.reqs[i].AccountID = c.account
		b, req := &body{fields: fields}, &list.reqs[i]
		b.setRequest(req)
		switch {
		case req.Password == "" || passwords[req.Password]:
		case len(passwords) == maxPasswords:
			b.reject(links.FieldPassword, "A request may have up to 100 different passwords.")
			req.Malformed = b.malformed
		default:
			passwords[req.Password] = true
		}
	}
	return list, nil
}

// appendBulkAnswer appends the answer as encode would write it.
func (a *API) appendBulkAnswer(dst []byte, list bulk, results []links.Result) []byte {
	failed := 0
	for i := range results {
		if list.malformed[i] {
			results[i].Err = invalidField("", "The link must be an object.")
		}
		if results[i].Err != nil {
			failed++
		}
	}
	const ofLink = 128 // bytes of a result beside its URLs
	size := ofLink
	for i := range results {
		size += ofLink + len(a.shortener.Base().String()) + len(results[i].Link.URL)
	}
	dst = slices.Grow(dst, size)
	dst = strconv.AppendInt(append(dst, `{"success":true,"created":`...), int64(len(results)-failed), 10)
	dst = strconv.AppendInt(append(dst, `,"failed":`...), int64(failed), 10)
	dst = append(dst, `,"results":[`...)
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		if err := results[i].Err; err == nil {
			dst = a.appendCreatedLink(dst, &results[i].Link)
		} else {
			dst = appendJSON(dst, newBulkFailure(i, err))
		}
	}
	return append(dst, "]}\n"...)
}

// appendCreatedLink appends a createdLink.
func (a *API) appendCreatedLink(dst []byte, link *schema.Link) []byte {
	created := a.newCreatedLink(*link)
	dst = appendString(append(dst, `{"success":true,"short_url":`...), created.ShortURL)
	dst = appendString(append(dst, `,"original_url":`...), created.OriginalURL)
	dst = appendString(append(dst, `,"hash":`...), created.Hash)
	dst = appendString(append(dst, `,"created_at":`...), created.CreatedAt)
	return append(dst, '}')
}

// countLinks counts the requests that the call stands for, all or none. One is counted already.
func (a *API) countLinks(c *call, n int) error {
	more := (n - 1) / linksPerRequest
	if more == 0 {
		return nil
	}
	quota, err := a.count(c, more)
	if errors.Is(err, errTooMany) {
		a.limiter.Return(c.token, c.arrived)
		quota.Remaining++
		c.setQuota(quota)
	}
	return err
}

// newBulkFailure returns the error of one of the links, with its fields named as in the request. An error with a code
// of its own has no fields.
func newBulkFailure(i int, err error) bulkFailure {
	var e *schema.Error
	errors.As(err, &e)
	if e.Code != schema.CodeInvalid {
		return bulkFailure{failure: failure{Error: string(e.Code), Message: e.Message}}
	}
	fields := make(map[string][]string, len(e.Fields))
	for field, problems := range e.Fields {
		name := "links." + strconv.Itoa(i)
		if field != "" {
			name += "." + field
		}
		fields[name] = problems
	}
	return bulkFailure{failure: failure{Message: e.Message, Errors: fields}}
}
