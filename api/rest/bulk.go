package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/shorten"
	"linkstream/schema"
)

// Limits of a bulk request.
const (
	maxBulk         = schema.MaxLinkBatch // links
	maxBulkBody     = 4 << 20             // bytes
	bulkTimeout     = 30 * time.Second    // for calls to the stores
	linksPerRequest = 100                 // of the rate limit
)

type bulkAnswer struct {
	Success bool  `json:"success"`
	Created int   `json:"created"`
	Failed  int   `json:"failed"`
	Results []any `json:"results"` // of createdLink and bulkFailure
}

type bulkFailure struct {
	Success bool `json:"success"`
	failure
}

// createLinks answers POST /api/v1/links/bulk.
func (a *API) createLinks(c *call) error {
	return a.once(c, fasthttp.StatusOK, func(record *shorten.Record) error {
		bulk, err := decodeBulk(c)
		if err != nil {
			return err
		}
		if err := a.countLinks(c, len(bulk.reqs)); err != nil {
			return err
		}
		var text bytes.Buffer // of the answer; it may have megabytes, so it is encoded once
		if record != nil {
			record.Answer = func(results []shorten.Result) ([]byte, error) {
				text.Reset()
				err := encode(&text, a.newBulkAnswer(bulk, results))
				return compress(text.Bytes()), err
			}
		}
		c.setDeadline(bulkTimeout)
		results, err := a.shortener.CreateOnce(c.ctx, bulk.reqs, record)
		if err == nil && record == nil {
			err = encode(&text, a.newBulkAnswer(bulk, results))
		}
		if err != nil {
			return withOutage(creatingLinks, err)
		}
		answerText(c.http, fasthttp.StatusOK, text.Bytes())
		return nil
	})
}

// bulk is the links of a bulk request.
type bulk struct {
	reqs      []shorten.Request
	malformed []bool // elements that are not objects
}

func decodeBulk(c *call) (bulk, error) {
	b, err := decodeBody(c)
	if err != nil {
		return bulk{}, err
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(b.fields["links"], &elements); err != nil || len(elements) == 0 || len(elements) > maxBulk {
		return bulk{}, invalidField("links", "The links must be an array of 1 to 1000 objects.")
	}
	links := bulk{make([]shorten.Request, len(elements)), make([]bool, len(elements))}
	for i, element := range elements {
		body := &body{malformed: map[string][]string{}}
		links.malformed[i] = json.Unmarshal(element, &body.fields) != nil || body.fields == nil
		links.reqs[i] = body.request()
		links.reqs[i].AccountID = c.account
	}
	return links, nil
}

func (a *API) newBulkAnswer(links bulk, results []shorten.Result) bulkAnswer {
	body := bulkAnswer{Success: true, Results: make([]any, len(results))}
	for i, result := range results {
		switch {
		case links.malformed[i]:
			result.Err = invalidField("", "The link must be an object.")
			fallthrough
		case result.Err != nil:
			body.Failed++
			body.Results[i] = newBulkFailure(i, result.Err)
		default:
			body.Created++
			body.Results[i] = a.newCreatedLink(result.Link)
		}
	}
	return body
}

// countLinks counts the requests that the call stands for, all or none. One is counted already.
func (a *API) countLinks(c *call, links int) error {
	more := (links - 1) / linksPerRequest
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

// newBulkFailure says what is wrong with one of the links, with its fields named as in the request.
func newBulkFailure(i int, err error) bulkFailure {
	var e *schema.Error
	errors.As(err, &e)
	if e.Code == schema.CodeUnsafeURL {
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
