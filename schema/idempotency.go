package schema

import (
	"context"
	"time"
)

// Limits of idempotency keys.
const (
	IdempotencyTTL     = 24 * time.Hour // for which a call is remembered
	MaxIdempotencyKeys = 100_000        // of an account in this time
)

// IdempotentCall is a call that its client may repeat: all calls with the same key change something once.
type IdempotentCall struct {
	AccountID int64
	Key       [32]byte  // SHA-256 of the key that the client has chosen
	Request   [32]byte  // SHA-256 of the call's content
	At        time.Time // when the call was made
}

// RecordedCall is the record of an IdempotentCall.
type RecordedCall struct {
	Request [32]byte
	Answer  []byte
}

// Why a store does not make an IdempotentCall.
var (
	ErrCallRepeated = Errorf(CodeConflict, "a call with this key has been recorded")
	ErrCallUnderWay = Errorf(CodeConflict, "a call with this key is under way")
	ErrTooManyKeys  = Errorf(CodeConflict, "the account has used %d keys within %v", MaxIdempotencyKeys, IdempotencyTTL)
)

// IdempotencyStore remembers calls. LinkStore.CreateLinks records them.
type IdempotencyStore interface {
	// RecordedCall returns the record of a call with the same account and key from the IdempotencyTTL before call.At.
	// CodeNotFound without such a record.
	RecordedCall(ctx context.Context, call IdempotentCall) (RecordedCall, error)
}
