// Package linkpassword checks the passwords of links for edges, which do not know them.
package linkpassword

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/request"
	"linkstream/schema"
)

const (
	callTimeout = 8 * time.Second // less than edges wait
	maxBody     = 64 << 10        // bytes of an attempt: edges read forms of 8 KiB, and JSON may have six bytes for one
	keySize     = 32
	reloadEvery = time.Second
)

// Store is the part of schema.Database that a Checker uses.
type Store interface {
	schema.AttemptStore
	LinkPassword(ctx context.Context, id int64) (hash string, version int64, err error)
	schema.ValueStore
}

// Checker checks attempts. Its methods may be called concurrently.
type Checker struct {
	store    Store
	guard    *Guard
	requests *request.Recorder
	log      *slog.Logger

	mu       sync.Mutex
	token    [sha256.Size]byte // of the edges' token; zero: not read yet
	loadedAt time.Time
}

// New returns a Checker. Attempts are limited by the windows of now; nil: time.Now.
func New(
	store Store, pool *auth.PasswordPool, now func() time.Time, requests *request.Recorder, log *slog.Logger,
) *Checker {
	return &Checker{store: store, guard: NewGuard("link", store, pool, now), requests: requests, log: log}
}

// Check judges an attempt. Every password is right for a link without one.
func (c *Checker) Check(ctx context.Context, attempt schema.PasswordAttempt) (schema.PasswordVerdict, error) {
	var version int64
	right, wait, err := c.guard.Check(ctx, attempt.LinkID, attempt.Client, attempt.Password,
		func() (hash string, err error) {
			hash, version, err = c.store.LinkPassword(ctx, attempt.LinkID)
			return hash, err
		})
	if err != nil || wait > 0 {
		return schema.PasswordVerdict{Wait: int(wait / time.Second)}, err
	}
	return schema.PasswordVerdict{Right: right, Version: version}, nil
}

const (
	// nameEvery is how often an api names itself to edges, and nameFor how long an api that was killed stays named.
	nameEvery = 20 * time.Second
	nameFor   = time.Minute
)

// Name tells edges, through the store, the base URL of this api until ctx is done.
func (c *Checker) Name(ctx context.Context, base schema.BaseURL) {
	own, others := schema.SharedAPIs+base.String(), map[string]sighting{}
	for away := false; ; {
		err := c.store.SetSharedValue(ctx, own, []byte(time.Now().UTC().Format(time.RFC3339Nano)))
		if err == nil {
			err = c.store.SetSharedValue(ctx, schema.SharedAPI, []byte(base.String()))
		}
		if err == nil {
			err = c.forget(ctx, own, others)
		}
		if errors.Is(err, schema.ErrMoved) {
			return
		}
		if err != nil && !away && ctx.Err() == nil {
			c.log.Warn("cannot tell edges where passwords of links are checked, retrying", "error", err)
		}
		away = err != nil
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reloadEvery)
			defer cancel()
			_ = c.store.DeleteSharedValues(ctx, own, own+"\x01") // otherwise another api does it
			return
		case <-time.After(nameEvery):
		}
	}
}

// sighting is a value that another api has stored, and since when this api has seen it.
type sighting struct {
	value string
	since time.Time
}

// forget removes the names of apis that have not changed their values for nameFor. Clocks of apis may differ.
func (c *Checker) forget(ctx context.Context, own string, others map[string]sighting) error {
	named, err := c.store.SharedValues(ctx, schema.SharedAPIs)
	if err != nil {
		return err
	}
	for name, value := range named {
		if seen, known := others[name]; !known || seen.value != string(value) {
			others[name] = sighting{string(value), time.Now()}
		} else if name != own && time.Since(seen.since) > nameFor {
			delete(others, name)
			if err := c.store.DeleteSharedValues(ctx, name, name+"\x01"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Owns reports whether a request is for a Checker.
func Owns(http *fasthttp.RequestCtx) bool {
	return string(http.URI().PathOriginal()) == schema.PasswordPath
}

// Credential returns the digest of a request's token.
func (c *Checker) Credential(http *fasthttp.RequestCtx) request.Credential {
	return sha256.Sum256([]byte(strings.TrimPrefix(string(http.Request.Header.Peek(fasthttp.HeaderAuthorization)),
		"Bearer ")))
}

// Handle answers an edge that asks about an attempt.
func (c *Checker) Handle(http *fasthttp.RequestCtx, turn *request.Turn) {
	began := time.Now()
	defer func() { c.requests.Observe(schema.PasswordPath, http.Response.StatusCode(), began) }()
	ctx, cancel := context.WithTimeout(request.Context(http), callTimeout)
	defer cancel()
	http.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	if known, err := c.knows(ctx, http, turn); err != nil {
		c.fail(http, err)
		return
	} else if !known || !http.IsPost() {
		turn.Distrust()
		http.SetStatusCode(fasthttp.StatusUnauthorized)
		return
	}
	turn.Trust()
	var attempt schema.PasswordAttempt
	if request.ReadBody(http, maxBody) != nil || json.Unmarshal(http.PostBody(), &attempt) != nil {
		http.SetStatusCode(fasthttp.StatusBadRequest)
		return
	}
	verdict, err := c.Check(ctx, attempt)
	if err != nil {
		c.fail(http, err)
		return
	}
	text, _ := json.Marshal(verdict) // numbers can be encoded
	http.SetContentType("application/json")
	http.SetBody(text)
}

func (c *Checker) fail(http *fasthttp.RequestCtx, err error) {
	c.log.Warn("cannot check the password of a link", "request_id", request.ID(http), "error", err)
	http.SetStatusCode(fasthttp.StatusServiceUnavailable)
}

// knows reports whether a request has the edges' token.
func (c *Checker) knows(ctx context.Context, http *fasthttp.RequestCtx, turn *request.Turn) (bool, error) {
	given := c.Credential(http)
	c.mu.Lock()
	token, stale := c.token, time.Since(c.loadedAt) > reloadEvery
	c.mu.Unlock()
	if equal(given, token) || !stale {
		return equal(given, token), nil
	}
	err := turn.LookUp(func() error { // nothing was read yet, or the store was restored
		first := make([]byte, keySize)
		_, _ = rand.Read(first) // never fails, see crypto/rand
		key, err := c.store.SharedValue(ctx, schema.SharedPasswordKey, first)
		if err == nil {
			token = sha256.Sum256([]byte(schema.PasswordToken(key)))
			c.mu.Lock()
			c.token, c.loadedAt = token, time.Now()
			c.mu.Unlock()
		}
		return err
	})
	return err == nil && equal(given, token), err
}

func equal(a, b [sha256.Size]byte) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

// Reject answers a request that could not be read.
func (c *Checker) Reject(http *fasthttp.RequestCtx, _ *request.Turn, refusal *request.Refusal) {
	http.SetStatusCode(refusal.Status)
}

// RejectBusy answers a request that was refused for want of a turn.
func (c *Checker) RejectBusy(http *fasthttp.RequestCtx) {
	http.SetStatusCode(fasthttp.StatusServiceUnavailable)
}
