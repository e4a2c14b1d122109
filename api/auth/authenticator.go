package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"

	"linkstream/schema"
)

const (
	// freshness is for how long the store's answer about a token is used, counted from the question: a token that any
	// process revokes is refused everywhere so much later.
	freshness = time.Second
	// maxEntries bounds the answers that are remembered, those about unknown tokens included.
	maxEntries = 1 << 16
	// lookupTimeout bounds a question to the store.
	lookupTimeout = 5 * time.Second
)

// Grant says for whom a valid token acts.
type Grant struct {
	TokenID   int64
	AccountID int64
	Suspended bool // the account is: the caller answers CodeForbidden, once it has counted the request
}

// Authenticator tells who calls. Its methods may be called concurrently.
type Authenticator struct {
	tokens  schema.TokenStore
	cache   *ristretto.Cache[[]byte, *Grant] // by digest; nil for a token that is unknown or revoked
	flights singleflight.Group               // by digest
	uses    uses
}

// NewAuthenticator returns an Authenticator that knows the tokens of a store.
func NewAuthenticator(tokens schema.TokenStore) (*Authenticator, error) {
	cache, err := ristretto.NewCache(&ristretto.Config[[]byte, *Grant]{
		NumCounters: 10 * maxEntries, MaxCost: maxEntries, BufferItems: 64, IgnoreInternalCost: true,
		// ristretto compares 128 bits, and a digest's first ones are as good as any.
		KeyToHash: func(digest []byte) (uint64, uint64) {
			return binary.LittleEndian.Uint64(digest), binary.LittleEndian.Uint64(digest[8:])
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make cache of tokens: %w", err)
	}
	return &Authenticator{tokens: tokens, cache: cache, uses: uses{at: map[int64]time.Time{}}}, nil
}

// Close ends the Authenticator, of which no method is called any more.
func (a *Authenticator) Close() { a.cache.Close() }

// errUnauthorized tells nobody what was wrong.
var errUnauthorized = schema.Errorf(schema.CodeUnauthorized, "The API token is missing or invalid.")

// Authenticate returns what the token in an Authorization header grants. CodeUnauthorized if the header is missing or
// malformed, or the token is unknown or revoked; CodeUnavailable if the store that would know does not answer. It notes
// the use, for Run to write, and keeps no reference to authorization.
func (a *Authenticator) Authenticate(ctx context.Context, authorization []byte) (Grant, error) {
	secret, ok := parseBearer(authorization)
	if !ok {
		return Grant{}, errUnauthorized
	}
	digest := sha256.Sum256(secret)
	grant, ok := a.cache.Get(digest[:])
	if !ok {
		var err error
		if grant, err = a.fetch(ctx, digest); err != nil {
			return Grant{}, err
		}
	}
	if grant == nil {
		return Grant{}, errUnauthorized
	}
	a.uses.note(grant.TokenID, time.Now().UTC())
	return *grant, nil
}

// fetch asks the store, once for all who want to know the same, and remembers the answer.
func (a *Authenticator) fetch(ctx context.Context, digest [sha256.Size]byte) (*Grant, error) {
	grant, err, _ := a.flights.Do(string(digest[:]), func() (any, error) {
		// Others wait, too, so the question does not end with the request that happens to ask it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		asked := time.Now()
		grant, err := a.ask(ctx, digest)
		if err != nil {
			return nil, err
		}
		if ttl := freshness - time.Since(asked); ttl > 0 { // 0 would mean for good
			a.cache.SetWithTTL(digest[:], grant, 1, ttl)
			a.cache.Wait() // until it can be found: else the next request would ask again
		}
		return grant, nil
	})
	if err != nil {
		return nil, err
	}
	return grant.(*Grant), nil
}

func (a *Authenticator) ask(ctx context.Context, digest [sha256.Size]byte) (*Grant, error) {
	token, account, err := a.tokens.TokenByDigest(ctx, digest)
	switch schema.ErrorCode(err) {
	case "":
		return &Grant{TokenID: token.ID, AccountID: account.ID, Suspended: account.Suspended}, nil
	case schema.CodeNotFound:
		return nil, nil
	default:
		return nil, &schema.Error{Code: schema.CodeUnavailable, Message: "The API token cannot be checked now.", Err: err}
	}
}

// parseBearer returns the token in the value of an Authorization header: "Bearer", in any case, spaces, and the token
// (RFC 9110, section 11.4). The token borrows from header.
func parseBearer(header []byte) (token []byte, ok bool) {
	scheme, token, _ := bytes.Cut(header, []byte(" "))
	token = bytes.TrimLeft(token, " ")
	return token, bytes.EqualFold(scheme, []byte("Bearer")) && validToken(token)
}
