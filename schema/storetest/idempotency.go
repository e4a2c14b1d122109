package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var idempotencyBehaviours = []behaviour[schema.Database]{
	{"CreateLinks records a call, and RecordedCall finds it", recordsCalls},
	{"CreateLinks makes a call once within IdempotencyTTL", makesCallOnce},
	{"CreateLinks makes a call for exactly one of concurrent calls with a key", makesOneOfConcurrentCalls},
	{"CreateLinks creates nothing if the call cannot be recorded", createsNothingUnrecorded},
	{"CreateLinks does not record a call without an answer", recordsNoCall},
}

// newCall returns a batch that is recorded under a key at a time. Its answer is the hashes of its links, "-" for a link
// that failed.
func newCall(accountID int64, key string, at time.Time, hashes ...string) *schema.LinkBatch {
	batch := newBatch(accountID, hashes...)
	batch.Call = &schema.IdempotentCall{AccountID: accountID, Request: [32]byte{1, 2, 3}, At: at}
	copy(batch.Call.Key[:], key)
	batch.Answer = func(links []schema.Link, errs []error) ([]byte, error) {
		answer := []byte{0}
		for i, link := range links {
			if errs[i] != nil {
				link.Hash = "-"
			}
			answer = fmt.Appendf(answer, " %s", link.Hash)
		}
		return answer, nil
	}
	return batch
}

// wantCall requires that a call has been recorded with an answer.
func wantCall(t *testing.T, store schema.IdempotencyStore, call schema.IdempotentCall, answer string) {
	t.Helper()
	got, err := store.RecordedCall(t.Context(), call)
	testkit.Must(t, err)
	testkit.Equal(t, "answer", string(got.Answer), answer)
	testkit.Equal(t, "request", got.Request, call.Request)
}

func recordsCalls(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	addLink(t, store, owner.ID, 0, "taken")
	batch := newCall(owner.ID, "key", epoch, "one", "taken", "two", "")
	createBatch(t, store, batch, "", schema.CodeConflict)
	wantCall(t, store, *batch.Call, "\x00 one - two "+batch.Links[3].Hash)
	empty, large := newCall(owner.ID, "empty", epoch, "taken"), newCall(owner.ID, "large", epoch)
	createBatch(t, store, empty, schema.CodeConflict)
	wantCall(t, store, *empty.Call, "\x00 -")
	text := bytes.Repeat([]byte("\x00\xff'\"\\"), 200_000)
	large.Answer = func([]schema.Link, []error) ([]byte, error) { return text, nil }
	createBatch(t, store, large)
	wantCall(t, store, *large.Call, string(text))
	foreign := newCall(other.ID, "key", epoch, "three")
	_, err := store.RecordedCall(t.Context(), *foreign.Call)
	testkit.WantCode(t, err, schema.CodeNotFound)
	createBatch(t, store, foreign)
	wantCall(t, store, *foreign.Call, "\x00 three")
	_, err = store.RecordedCall(t.Context(), *newCall(owner.ID, "none", epoch).Call)
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func makesCallOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	createBatch(t, store, newCall(owner.ID, "key", epoch, "one"))
	for _, later := range []time.Duration{-time.Second, 0, time.Hour, schema.IdempotencyTTL - time.Second} {
		again := newCall(owner.ID, "key", epoch.Add(later), "two", "")
		again.Call.Request = [32]byte{4}
		if err := store.CreateLinks(t.Context(), again); !errors.Is(err, schema.ErrCallRepeated) {
			t.Fatalf("%v later: %v", later, err)
		}
		again.Call.Request = [32]byte{1, 2, 3}
		wantCall(t, store, *again.Call, "\x00 one")
	}
	sameOrdinals(t, store, owner.ID, 1)
	again := newCall(owner.ID, "key", epoch.Add(schema.IdempotencyTTL), "two")
	_, err := store.RecordedCall(t.Context(), *again.Call)
	testkit.WantCode(t, err, schema.CodeNotFound)
	createBatch(t, store, again)
	wantCall(t, store, *again.Call, "\x00 two")
	sameOrdinals(t, store, owner.ID, 2)
}

func makesOneOfConcurrentCalls(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	for round := range int64(5) {
		batches := make([]*schema.LinkBatch, 8)
		winner := onlyOne(t, concurrently(len(batches), func(i int) error {
			batches[i] = newCall(owner.ID, fmt.Sprintf("key-%d", round), epoch, "", "", "")
			err := store.CreateLinks(t.Context(), batches[i])
			if err != nil && !errors.Is(err, schema.ErrCallRepeated) && !errors.Is(err, schema.ErrCallUnderWay) {
				return schema.Errorf(schema.CodeInternal, "call %d: %w", i, err)
			}
			return err
		}), schema.CodeConflict)
		sameOrdinals(t, store, owner.ID, 3*(round+1))
		var hashes []string
		for _, link := range batches[winner].Links {
			hashes = append(hashes, link.Hash)
		}
		wantCall(t, store, *batches[winner].Call, "\x00 "+strings.Join(hashes, " "))
	}
}

func createsNothingUnrecorded(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "taken")
	failing := newCall(owner.ID, "key", epoch, "one")
	failing.Answer = func([]schema.Link, []error) ([]byte, error) {
		return nil, schema.Errorf(schema.CodeInternal, "no answer")
	}
	testkit.WantCode(t, store.CreateLinks(t.Context(), failing), schema.CodeInternal)
	undrawn := newCall(owner.ID, "key", epoch, "")
	undrawn.NewHash = func() string { return "taken" }
	testkit.WantCode(t, store.CreateLinks(t.Context(), undrawn), schema.CodeInternal)
	_, err := store.RecordedCall(t.Context(), *undrawn.Call)
	testkit.WantCode(t, err, schema.CodeNotFound)
	createBatch(t, store, newCall(owner.ID, "key", epoch, "one"))
	sameOrdinals(t, store, owner.ID, 2)
}

func recordsNoCall(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	for _, hash := range []string{"one", "two"} {
		batch := newCall(owner.ID, "key", epoch, hash)
		batch.Answer = func([]schema.Link, []error) ([]byte, error) { return nil, nil }
		createBatch(t, store, batch)
		_, err := store.RecordedCall(t.Context(), *batch.Call)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
	sameOrdinals(t, store, owner.ID, 2)
}

// TestOldCalls checks that the store deletes calls after their time, a few at a time, and keeps at most
// MaxIdempotencyKeys of an account. rows returns how many it keeps; number gives the account's newest call another
// number.
func TestOldCalls(t *testing.T, store schema.Database, rows func() int, number func(accountID, number int64)) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for i := range 40 {
		createBatch(t, store, newCall(owner.ID, fmt.Sprint(i), epoch))
	}
	testkit.Equal(t, "rows while none is old", rows(), 40)
	later := epoch.Add(schema.IdempotencyTTL)
	createBatch(t, store, newCall(other.ID, "key", later.Add(-time.Second)))
	testkit.Equal(t, "rows while none is old", rows(), 41)
	t.Run("each call deletes a few that are old", func(t *testing.T) {
		for calls, before := 0, rows(); rows() > 11; calls, before = calls+1, rows() {
			createBatch(t, store, newCall(other.ID, fmt.Sprintf("later-%d", calls), later))
			if after := rows(); after >= before || after < before-20 {
				t.Fatalf("%d rows of %d are left", after, before)
			}
		}
	})
	t.Run("an account has at most MaxIdempotencyKeys", func(t *testing.T) {
		third := addAccount(t, store, "c@example.org")
		createBatch(t, store, newCall(third.ID, "first", later))
		createBatch(t, store, newCall(third.ID, "last", later.Add(time.Hour)))
		number(third.ID, schema.MaxIdempotencyKeys)
		refused := newCall(third.ID, "more", later.Add(schema.IdempotencyTTL-time.Second), "hash")
		if err := store.CreateLinks(t.Context(), refused); !errors.Is(err, schema.ErrTooManyKeys) {
			t.Fatal(err)
		}
		createBatch(t, store, newBatch(third.ID, "hash")) // which the refused call has not created
		createBatch(t, store, newCall(third.ID, "more", later.Add(schema.IdempotencyTTL)))
	})
}
