// Package password lets visitors through to links that ask for a password.
//
// An edge knows that a link asks for a password, and a version that changes with the password. An api has the hash and
// checks what visitors enter; its address is in the link store, unless -edge.api says another one. The right password
// earns a grant: a cookie that says until when, with a code made of the link, the version, and a key that all edges
// share through the link store. So a grant is worth as much on every edge, also after a restart, and nothing for
// another link or once the password has changed.
package password

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"linkstream/schema"
	"linkstream/schema/turns"
)

// Life is how long a grant lets its visitor through.
const Life = 10 * time.Minute

const (
	keySize     = 32
	codeSize    = 24 // of a grant's code: nobody guesses 192 bits
	loadTimeout = 2 * time.Second
	askTimeout  = 10 * time.Second // an api waits for its turn to compute for half of it
	maxVerdict  = 1 << 10          // bytes
)

// underWay bounds the attempts that wait for a verdict. Networks take turns.
var underWay = turns.Limits{Places: 64, PlacesEach: 8, Waiting: 256, WaitingEach: 16}

// Store is the part of schema.Database that a Gate uses.
type Store interface {
	SharedValue(ctx context.Context, name string, first []byte) ([]byte, error)
}

// Checker returns what becomes of an attempt.
type Checker func(context.Context, schema.PasswordAttempt) (schema.PasswordVerdict, error)

// Gate checks grants and attempts. Its methods may be called concurrently.
type Gate struct {
	store  Store
	check  Checker
	turns  *turns.Turns
	key    atomic.Pointer[[]byte]
	client http.Client
}

// New returns a gate. With check nil an api checks attempts: the one at base, or, without a base, the one that the
// store names.
func New(store Store, check Checker, base schema.BaseURL) *Gate {
	g := &Gate{store: store, check: check, turns: turns.New(underWay)}
	g.client = http.Client{Timeout: askTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if check == nil {
		g.check = func(ctx context.Context, a schema.PasswordAttempt) (schema.PasswordVerdict, error) {
			return g.ask(ctx, base, a)
		}
	}
	return g
}

// Ready reports whether the gate has its key, without which it can neither check nor make a grant.
func (g *Gate) Ready() bool { return g.key.Load() != nil }

// Load reads the key from the store, unless it is there.
func (g *Gate) Load(ctx context.Context) error {
	if g.Ready() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	first := make([]byte, keySize)
	_, _ = rand.Read(first) // never fails, see crypto/rand
	key, err := g.store.SharedValue(ctx, schema.SharedPasswordKey, first)
	if err != nil {
		return err
	}
	g.key.Store(&key)
	return nil
}

// Grant returns what lets a visitor through to a link who has entered the password with a version, "" if the gate is
// not ready.
func (g *Gate) Grant(link, version int64, now time.Time) string {
	if !g.Ready() {
		return ""
	}
	grant := binary.BigEndian.AppendUint64(nil, uint64(now.Add(Life).Unix()))
	return base64.RawURLEncoding.EncodeToString(g.appendCode(grant, link, version))
}

// Admits reports whether a text is a grant for a link. A gate that is not ready admits nobody.
func (g *Gate) Admits(text []byte, link, version int64, now time.Time) bool {
	var grant [8 + codeSize]byte
	if !g.Ready() || base64.RawURLEncoding.DecodedLen(len(text)) != len(grant) {
		return false
	}
	if _, err := base64.RawURLEncoding.Decode(grant[:], text); err != nil {
		return false
	}
	until := grant[:8:8]
	right := subtle.ConstantTimeCompare(grant[:], g.appendCode(until, link, version)) == 1
	return right && now.Unix() < int64(binary.BigEndian.Uint64(until))
}

// appendCode appends the code of a grant to the time until which it is valid.
func (g *Gate) appendCode(until []byte, link, version int64) []byte {
	key := g.key.Load()
	if key == nil {
		return until
	}
	mac := hmac.New(sha256.New, *key)
	mac.Write([]byte("grant"))
	mac.Write(until)
	mac.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(link)), uint64(version)))
	return append(until, mac.Sum(nil)[:codeSize]...)
}

// Try checks an attempt. If too many of the network are under way, the verdict has a Wait.
func (g *Gate) Try(ctx context.Context, attempt schema.PasswordAttempt) (schema.PasswordVerdict, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	network := turns.Site(attempt.Client)
	if g.turns.Take(ctx, network, 1) != nil {
		return schema.PasswordVerdict{Wait: 1}, nil
	}
	defer g.turns.Leave(network)
	if err := g.Load(ctx); err != nil {
		return schema.PasswordVerdict{}, err
	}
	return g.check(ctx, attempt)
}

// ask asks an api.
func (g *Gate) ask(ctx context.Context, base schema.BaseURL,
	attempt schema.PasswordAttempt) (verdict schema.PasswordVerdict, err error) {
	to := base.String()
	if base.IsZero() {
		named, err := g.store.SharedValue(ctx, schema.SharedAPI, nil)
		if err != nil {
			return verdict, err
		}
		to = string(named)
	}
	body, err := json.Marshal(attempt)
	if err != nil {
		return verdict, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to+schema.PasswordPath, bytes.NewReader(body))
	if err != nil {
		return verdict, err
	}
	key := g.key.Load()
	if key == nil {
		return verdict, errors.New("ask an api about a password: the key has just changed")
	}
	request.Header.Set("Authorization", "Bearer "+schema.PasswordToken(*key))
	response, err := g.client.Do(request)
	if err != nil {
		return verdict, fmt.Errorf("ask an api about a password: %w", err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		err = json.NewDecoder(io.LimitReader(response.Body, maxVerdict)).Decode(&verdict)
		return verdict, err
	case http.StatusUnauthorized:
		g.key.CompareAndSwap(key, nil) // the store has another one, such as after a restore
	}
	return verdict, errors.New("ask an api about a password: it answers " + response.Status)
}
