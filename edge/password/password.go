// Package password lets visitors through to links that ask for a password.
//
// Edges have no hash of a link's password, only its version, which changes with the password. An api has the hash and
// checks attempts; the apis that run name themselves in the link store, unless -edge.api names another one. The right
// password earns a grant: a cookie that says until when, with a code made of the link, the version, and a key that all
// edges share through the link store. So a grant is worth as much on every edge, also after a restart, and nothing for
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
	"slices"
	"strings"
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
	askNext     = time.Second      // after that another api is asked, too
	maxVerdict  = 1 << 10          // bytes
)

// underWay bounds the attempts that wait for a verdict. Networks take turns.
var underWay = turns.Limits{Places: 64, PlacesEach: 8, Waiting: 256, WaitingEach: 16}

// Store is the part of schema.Database that a Verifier uses.
type Store interface {
	SharedValue(ctx context.Context, name string, first []byte) ([]byte, error)
	SharedValues(ctx context.Context, prefix string) (map[string][]byte, error)
}

// Checker returns the verdict on an attempt.
type Checker func(context.Context, schema.PasswordAttempt) (schema.PasswordVerdict, error)

// Verifier checks grants and attempts. Its methods may be called concurrently.
type Verifier struct {
	store  Store
	check  Checker
	turns  *turns.Turns
	key    atomic.Pointer[[]byte]
	client http.Client
	last   atomic.Pointer[string] // the base URL of the api that answered last
}

// New returns a Verifier. With check nil an api checks attempts: the one at base, or, without a base, one of the apis
// that the store names.
func New(store Store, check Checker, base schema.BaseURL) *Verifier {
	v := &Verifier{store: store, check: check, turns: turns.New(underWay)}
	v.client = http.Client{Timeout: askTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if check == nil {
		v.check = func(ctx context.Context, a schema.PasswordAttempt) (schema.PasswordVerdict, error) {
			return v.askAny(ctx, base, a)
		}
	}
	return v
}

// Ready reports whether the Verifier has its key, without which it can neither check nor make a grant.
func (v *Verifier) Ready() bool { return v.key.Load() != nil }

// Load reads the key from the store, unless it is there.
func (v *Verifier) Load(ctx context.Context) error {
	if v.Ready() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	first := make([]byte, keySize)
	_, _ = rand.Read(first) // never fails, see crypto/rand
	key, err := v.store.SharedValue(ctx, schema.SharedPasswordKey, first)
	if err != nil {
		return err
	}
	v.key.Store(&key)
	return nil
}

// Grant returns a grant for a visitor who has entered the password of a link with a version, "" if the Verifier is not
// ready.
func (v *Verifier) Grant(link, version int64, now time.Time) string {
	if !v.Ready() {
		return ""
	}
	grant := binary.BigEndian.AppendUint64(nil, uint64(now.Add(Life).Unix()))
	return base64.RawURLEncoding.EncodeToString(v.appendCode(grant, link, version))
}

// ValidGrant reports whether a text is a grant for a link. A Verifier that is not ready accepts none.
func (v *Verifier) ValidGrant(text []byte, link, version int64, now time.Time) bool {
	var grant [8 + codeSize]byte
	if !v.Ready() || base64.RawURLEncoding.DecodedLen(len(text)) != len(grant) {
		return false
	}
	if _, err := base64.RawURLEncoding.Decode(grant[:], text); err != nil {
		return false
	}
	until := grant[:8:8]
	right := subtle.ConstantTimeCompare(grant[:], v.appendCode(until, link, version)) == 1
	return right && now.Unix() < int64(binary.BigEndian.Uint64(until))
}

// appendCode appends the code of a grant to the time until which it is valid.
func (v *Verifier) appendCode(until []byte, link, version int64) []byte {
	key := v.key.Load()
	if key == nil {
		return until
	}
	mac := hmac.New(sha256.New, *key)
	mac.Write([]byte("grant"))
	mac.Write(until)
	mac.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(link)), uint64(version)))
	return append(until, mac.Sum(nil)[:codeSize]...)
}

// Try has an attempt checked. If too many of the network are under way, the verdict has a Wait.
func (v *Verifier) Try(ctx context.Context, attempt schema.PasswordAttempt) (schema.PasswordVerdict, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	network := turns.Site(attempt.Client)
	if v.turns.Take(ctx, network, 1) != nil {
		return schema.PasswordVerdict{Wait: 1}, nil
	}
	defer v.turns.Leave(network)
	if err := v.Load(ctx); err != nil {
		return schema.PasswordVerdict{}, err
	}
	return v.check(ctx, attempt)
}

// verdictOf is the answer of an api.
type verdictOf struct {
	api     string
	verdict schema.PasswordVerdict
	err     error
}

// askAny asks apis until one of them answers: the next one once an api has failed or has not answered for askNext.
func (v *Verifier) askAny(
	ctx context.Context, base schema.BaseURL, attempt schema.PasswordAttempt,
) (schema.PasswordVerdict, error) {
	apis, err := v.apis(ctx, base)
	if err != nil {
		return schema.PasswordVerdict{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan verdictOf, len(apis))
	for asked, failed := 0, 0; failed < len(apis); {
		var late <-chan time.Time
		if asked < len(apis) {
			go func(api string) {
				verdict, err := v.ask(ctx, api, attempt)
				answers <- verdictOf{api, verdict, err}
			}(apis[asked])
			if asked++; asked < len(apis) {
				late = time.After(askNext)
			}
		}
		select {
		case a := <-answers:
			if a.err == nil {
				v.last.Store(&a.api)
				return a.verdict, nil
			}
			failed++
			err = errors.Join(err, a.err)
		case <-late:
		}
	}
	return schema.PasswordVerdict{}, err
}

// apis returns the base URLs of the apis to ask, first the one that answered last.
func (v *Verifier) apis(ctx context.Context, base schema.BaseURL) (apis []string, err error) {
	if !base.IsZero() {
		return []string{base.String()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	named, err := v.store.SharedValues(ctx, schema.SharedAPIs)
	if err != nil {
		return nil, err
	}
	for name := range named {
		apis = append(apis, strings.TrimPrefix(name, schema.SharedAPIs))
	}
	if len(apis) == 0 {
		return nil, errors.New("ask an api about a password: none is named")
	}
	slices.Sort(apis)
	if last := v.last.Load(); last != nil {
		if i := slices.Index(apis, *last); i > 0 {
			apis[0], apis[i] = apis[i], apis[0]
		}
	}
	return apis, nil
}

// ask asks an api.
func (v *Verifier) ask(ctx context.Context, to string,
	attempt schema.PasswordAttempt) (verdict schema.PasswordVerdict, err error) {
	body, err := json.Marshal(attempt)
	if err != nil {
		return verdict, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to+schema.PasswordPath, bytes.NewReader(body))
	if err != nil {
		return verdict, err
	}
	key := v.key.Load()
	if key == nil {
		return verdict, errors.New("ask an api about a password: the key has just changed")
	}
	request.Header.Set("Authorization", "Bearer "+schema.PasswordToken(*key))
	response, err := v.client.Do(request)
	if err != nil {
		return verdict, fmt.Errorf("ask an api about a password: %w", err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		err = json.NewDecoder(io.LimitReader(response.Body, maxVerdict)).Decode(&verdict)
		return verdict, err
	case http.StatusUnauthorized:
		v.key.CompareAndSwap(key, nil) // the store has another one, such as after a restore
	}
	return verdict, errors.New("ask an api about a password: it answers " + response.Status)
}
