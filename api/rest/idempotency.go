package rest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/schema"
)

const (
	headerKey      = "Idempotency-Key"
	headerReplayed = "Idempotency-Replayed"
	maxKeyLen      = 255     // visible ASCII characters
	maxRecorded    = 8 << 20 // bytes of an answer: at most maxBulkBody, and what is added for each link
	// recordedOK begins the record of an answer with status 200 by an operation whose answers have another one.
	recordedOK = "200 "
	// underWayRetryAfter is the Retry-After, in seconds, while another call with the key is under way.
	underWayRetryAfter = "1"
)

var (
	errUnderWay = &httpError{status: fasthttp.StatusConflict, message: "Another request with this Idempotency-Key is " +
		"under way: repeat it later."}
	errOtherUse = invalidField(headerKey, "The key was used for another request within the last 24 hours.")
	errBadKey   = invalidField(headerKey, "The key must have 1 to 255 visible ASCII characters.")
	errManyKeys = invalidField(headerKey, "The account has used 100,000 keys within 24 hours: leave the header out, "+
		"or wait.")
)

// keyedCall names a call that is under way in this process.
type keyedCall struct {
	account int64
	key     [32]byte
}

// once calls create, which creates links, sets what is recorded, and answers with the status. If the request has no
// Idempotency-Key, record is nil. If a call with the key has been recorded, its answer is sent again instead. A call
// that fails has created nothing and is not recorded.
func (a *API) once(c *call, status int, create func(record *links.Record) error) error {
	keys := c.http.Request.Header.PeekAll(headerKey)
	if len(keys) == 0 {
		return create(nil)
	}
	if len(keys) > 1 || !validKey(keys[0]) {
		return errBadKey
	}
	record := &links.Record{Call: schema.IdempotentCall{
		AccountID: c.account, Key: sha256.Sum256(keys[0]), Request: requestDigest(c), At: c.arrived}}
	id := keyedCall{c.account, record.Call.Key}
	if _, busy := a.underWay.LoadOrStore(id, struct{}{}); busy {
		return c.underWay()
	}
	defer a.underWay.Delete(id)
	if replayed, err := a.replay(c, status, record.Call); replayed || err != nil {
		return err
	}
	switch err := create(record); {
	case errors.Is(err, schema.ErrCallRepeated): // meanwhile, by another process
		if replayed, err := a.replay(c, status, record.Call); replayed || err != nil {
			return err
		}
		return c.underWay()
	case errors.Is(err, schema.ErrCallUnderWay):
		return c.underWay()
	case errors.Is(err, schema.ErrTooManyKeys):
		return errManyKeys
	default:
		return err
	}
}

func validKey(key []byte) bool {
	visible := func(b byte) bool { return '!' <= b && b <= '~' }
	return len(key) > 0 && len(key) <= maxKeyLen && !slices.ContainsFunc(key, func(b byte) bool { return !visible(b) })
}

// requestDigest returns what tells requests with the same key apart: path and body.
func requestDigest(c *call) (digest [32]byte) {
	hash := sha256.New()
	hash.Write([]byte(c.route + "\n"))
	hash.Write(c.http.PostBody())
	hash.Sum(digest[:0])
	return digest
}

// underWay returns the error for a call whose key another one uses.
func (c *call) underWay() error {
	c.http.Response.Header.Set("Retry-After", underWayRetryAfter)
	return errUnderWay
}

// replay sends the recorded answer of a call again, if there is one.
func (a *API) replay(c *call, status int, call schema.IdempotentCall) (replayed bool, err error) {
	recorded, err := a.links.RecordedCall(c.ctx, call)
	switch {
	case schema.ErrorCode(err) == schema.CodeNotFound:
		return false, nil
	case err != nil:
		return false, withOutage(creatingLinks, err)
	case recorded.Request != call.Request:
		return false, errOtherUse
	}
	text, err := decoder.DecodeAll(recorded.Answer, nil)
	if err != nil {
		return false, schema.Errorf(schema.CodeInternal, "read recorded answer: %w", err)
	}
	text, reused := bytes.CutPrefix(text, []byte(recordedOK))
	if reused {
		status = fasthttp.StatusOK
	}
	c.http.Response.Header.Set(headerReplayed, "true")
	answerText(c.http, status, text)
	return true, nil
}

// Recorded answers are compressed: answers of bulk calls are long and repetitive.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxRecorded))
)

func compress(text []byte) []byte { return encoder.EncodeAll(text, nil) }
