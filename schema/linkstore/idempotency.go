package linkstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"linkstream/schema"
)

const (
	recordedCall = `SELECT request, answer FROM idempotency_keys WHERE account_id = $1 AND key = $2 AND used_at > $3`
	tryLock      = `SELECT {try lock: $1}`
	hasCall      = `SELECT EXISTS (SELECT 1 FROM idempotency_keys WHERE account_id = $1 AND key = $2 AND used_at > $3)`
	forgetCall   = `DELETE FROM idempotency_keys WHERE account_id = $1 AND key = $2 AND used_at <= $3`
	// forgetOldCalls skips rows that another call is deleting, so that no call waits for another's clean-up.
	forgetOldCalls = `
	DELETE FROM idempotency_keys WHERE ({row: account_id key}) {among}
		SELECT {row: account_id key} FROM idempotency_keys
		WHERE used_at <= $1 ORDER BY used_at LIMIT $2{for update skip locked}{end}`
	// recordCall inserts nothing if the account's call that is $6 numbers older is still remembered. The lock on the
	// account's row keeps numbers apart.
	recordCall = `
	INSERT INTO idempotency_keys (account_id, key, number, request, answer, used_at)
	SELECT $1, $2, next.number, $4, $5, $7
	FROM (SELECT coalesce(max(number), 0) + 1 AS number FROM idempotency_keys WHERE account_id = $1) AS next
	WHERE NOT EXISTS (
		SELECT 1 FROM idempotency_keys k WHERE k.account_id = $1 AND k.number = next.number - $6 AND k.used_at > $3)`
)

// callsForgotten is the number of old calls that are deleted with each recorded one.
const callsForgotten = 16

// RecordedCall implements schema.IdempotencyStore.
func (s *Store) RecordedCall(
	ctx context.Context, call schema.IdempotentCall,
) (recorded schema.RecordedCall, err error) {
	err = get(ctx, s.db, []any{bytes32{&recorded.Request}, &recorded.Answer}, recordedCall, call.AccountID, call.Key[:],
		call.At.Add(-schema.IdempotencyTTL))
	return recorded, wrap(err, "read recorded call of account %d", call.AccountID)
}

// lockCall lets one transaction at a time make the call. It does not wait for another one.
func lockCall(ctx context.Context, tx Conn, call *schema.IdempotentCall) error {
	if call == nil {
		return nil
	}
	digest := sha256.Sum256(binary.BigEndian.AppendUint64(call.Key[:], uint64(call.AccountID)))
	var locked bool
	err := get(ctx, tx, value(&locked), tryLock, int64(binary.BigEndian.Uint64(digest[:])))
	if err == nil && !locked {
		return schema.ErrCallUnderWay
	}
	return err
}

// checkCall finds out whether the call has been recorded. It follows the lock on the account, with which calls are
// recorded.
func checkCall(ctx context.Context, tx Conn, call *schema.IdempotentCall) error {
	if call == nil {
		return nil
	}
	var recorded bool
	err := get(ctx, tx, value(&recorded), hasCall, call.AccountID, call.Key[:], call.At.Add(-schema.IdempotencyTTL))
	if err != nil || !recorded {
		return err
	}
	return schema.ErrCallRepeated
}

// keepCall records the call, unless it has no answer.
func keepCall(ctx context.Context, tx Conn, call *schema.IdempotentCall, answer []byte) error {
	if answer == nil {
		return nil
	}
	since := call.At.Add(-schema.IdempotencyTTL)
	var recorded int64
	var b Batch
	b.exec(forgetCall, call.AccountID, call.Key[:], since)
	b.exec(forgetOldCalls, since, callsForgotten)
	b.count(&recorded, recordCall, call.AccountID, call.Key[:], since, call.Request[:], answer, schema.MaxIdempotencyKeys,
		call.At)
	err := tx.Send(ctx, &b)
	if err == nil && recorded == 0 {
		err = schema.ErrTooManyKeys
	}
	return err
}
