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
	// grantTTL is how long an answer of the store is used, counted from when it was asked for. A revoked token works this
	// much longer, in every process.
	grantTTL = time.Second
	// maxGrants bounds the cached answers, those about unknown tokens included.
	maxGrants = 1 << 16
	// storeTimeout bounds one call to the store.
	storeTimeout = 5 * time.Second
)

// Grant says on whose behalf a token acts.
type Grant struct {
	TokenID   int64
	AccountID int64
	Suspended bool      // of the account; the caller answers CodeForbidden after it has counted the request
	Scopes    string    // see schema.HasScope
	ExpiresAt time.Time // of the token; zero: never
}

// Authenticator checks API tokens. Its methods may be called concurrently.
type Authenticator struct {
	tokens  schema.TokenStore
	cache   *ristretto.Cache[[]byte, *Grant] // by digest; nil for an unknown or revoked token
	flights singleflight.Group               // by digest
	uses    uses
}

// NewAuthenticator returns an Authenticator of the tokens in a store.
func NewAuthenticator(tokens schema.TokenStore) (*Authenticator, error) {
	cache, err := ristretto.NewCache(&ristretto.Config[[]byte, *Grant]{
		NumCounters: 10 * maxGrants, MaxCost: maxGrants, BufferItems: 64, IgnoreInternalCost: true,
		// ristretto compares 128 bits of hash. The digest is a hash already, so its first 128 bits serve.
		KeyToHash: func(digest []byte) (uint64, uint64) {
			return binary.LittleEndian.Uint64(digest), binary.LittleEndian.Uint64(digest[8:])
		},
	})
	if err != nil {
		return nil, fmt.Errorf("create token cache: %w", err)
	}
	return &Authenticator{tokens: tokens, cache: cache, uses: uses{at: map[int64]time.Time{}}}, nil
}

// Close releases the cache. No method may be called afterwards.
func (a *Authenticator) Close() { a.cache.Close() }

// ErrUnauthorized is the error of every token that is not valid. It is the same for every cause, so that attackers
// cannot distinguish the causes.
var ErrUnauthorized = schema.ClientErrorf(schema.CodeUnauthorized, "The API token is missing or invalid.")

// Authenticate returns the rights of the token in the value of an Authorization header. CodeUnauthorized if the header
// is missing or malformed, or the token unknown, revoked or expired; CodeUnavailable if the store does not answer. It
// notes the use for Run to write, and keeps no reference to authorization.
func (a *Authenticator) Authenticate(ctx context.Context, authorization []byte) (Grant, error) {
	secret, ok := parseBearer(authorization)
	if !ok {
		return Grant{}, ErrUnauthorized
	}
	digest := sha256.Sum256(secret)
	grant, ok := a.cache.Get(digest[:])
	if !ok {
		var err error
		if grant, err = a.fetch(ctx, digest); err != nil {
			return Grant{}, err
		}
	}
	if grant == nil || !grant.ExpiresAt.IsZero() && !time.Now().Before(grant.ExpiresAt) {
		return Grant{}, ErrUnauthorized
	}
	a.uses.note(grant.TokenID, time.Now().UTC())
	return *grant, nil
}

// fetch asks the store, once for all concurrent calls with the same digest, and caches the answer.
func (a *Authenticator) fetch(ctx context.Context, digest [sha256.Size]byte) (*Grant, error) {
	grant, err, _ := a.flights.Do(string(digest[:]), func() (any, error) {
		// Other requests wait for this call too, so it must not end with the request that makes it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		asked := time.Now()
		grant, err := a.ask(ctx, digest)
		if err != nil {
			return nil, err
		}
		if ttl := grantTTL - time.Since(asked); ttl > 0 { // to ristretto, 0 means no expiry
			a.cache.SetWithTTL(digest[:], grant, 1, ttl)
			a.cache.Wait() // ristretto sets asynchronously; without Wait the next request would ask the store again
		}
		return grant, nil
	})
	if err != nil {
		return nil, err
	}
	return grant.(*Grant), nil
}

// ask returns nil for an unknown or revoked token.
func (a *Authenticator) ask(ctx context.Context, digest [sha256.Size]byte) (*Grant, error) {
	token, account, err := a.tokens.TokenByDigest(ctx, digest)
	switch schema.ErrorCode(err) {
	case "":
		return &Grant{TokenID: token.ID, AccountID: account.ID, Suspended: account.Suspended, Scopes: token.Scopes,
			ExpiresAt: token.ExpiresAt}, nil
	case schema.CodeNotFound:
		return nil, nil
	default:
		return nil, schema.Errorf(schema.CodeUnavailable, "check API token: %w", err)
	}
}

// Credential returns the digest of the token in the value of an Authorization header; zero if it has none that
// Authenticate would look up.
func Credential(authorization []byte) (digest [sha256.Size]byte) {
	if secret, ok := parseBearer(authorization); ok {
		digest = sha256.Sum256(secret)
	}
	return digest
}

// parseBearer returns the token in the value of an Authorization header: "Bearer" in any case, one or more spaces, and
// the token (RFC 9110, section 11.4). The token borrows from header.
func parseBearer(header []byte) (token []byte, ok bool) {
	scheme, token, _ := bytes.Cut(header, []byte(" "))
	token = bytes.TrimLeft(token, " ")
	return token, bytes.EqualFold(scheme, []byte("Bearer")) && validToken(token)
}
