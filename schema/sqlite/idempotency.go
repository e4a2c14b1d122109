package sqlite

import (
	"context"
	"database/sql"

	"linkstream/schema"
)

const (
	recordedCall   = `SELECT request, answer FROM idempotency_keys WHERE account_id = ? AND key = ? AND used_at > ?`
	forgetCall     = `DELETE FROM idempotency_keys WHERE account_id = ? AND key = ? AND used_at <= ?`
	forgetOldCalls = `
	DELETE FROM idempotency_keys WHERE rowid IN (SELECT rowid FROM idempotency_keys WHERE used_at <= ? ORDER BY used_at LIMIT ?)`
	// recordCall inserts nothing if the account's call that is ?6 numbers older is still remembered.
	recordCall = `
	INSERT INTO idempotency_keys (account_id, key, number, request, answer, used_at)
	SELECT ?1, ?2, used.number + 1, ?4, ?5, ?7
	FROM (SELECT coalesce(max(number), 0) AS number FROM idempotency_keys WHERE account_id = ?1) used
	WHERE NOT EXISTS (
		SELECT 1 FROM idempotency_keys k WHERE k.account_id = ?1 AND k.number = used.number + 1 - ?6 AND k.used_at > ?3)`
)

// callsForgotten is the number of old calls that are deleted with each recorded one.
const callsForgotten = 16

// RecordedCall implements schema.IdempotencyStore.
func (s *Store) RecordedCall(ctx context.Context, call schema.IdempotentCall) (recorded schema.RecordedCall, err error) {
	since := call.At.Add(-schema.IdempotencyTTL)
	var request []byte
	err = s.db.queryRow(ctx, recordedCall, call.AccountID, call.Key[:], unixMillis{&since}).Scan(&request, &recorded.Answer)
	copy(recorded.Request[:], request)
	return recorded, wrap(err, "read recorded call of account %d", call.AccountID)
}

// checkCall finds out whether the call has been recorded.
func checkCall(ctx context.Context, tx *sql.Tx, call *schema.IdempotentCall) error {
	if call == nil {
		return nil
	}
	since := call.At.Add(-schema.IdempotencyTTL)
	var request, answer sql.RawBytes
	rows, err := tx.QueryContext(ctx, recordedCall, call.AccountID, call.Key[:], unixMillis{&since})
	return forEachRow(rows, err, func() error {
		if err := rows.Scan(&request, &answer); err != nil {
			return err
		}
		return schema.ErrCallRepeated
	})
}

// keepCall records the call, unless it has no answer.
func keepCall(ctx context.Context, tx *sql.Tx, call *schema.IdempotentCall, answer []byte) error {
	if answer == nil {
		return nil
	}
	since := call.At.Add(-schema.IdempotencyTTL)
	if _, err := tx.ExecContext(ctx, forgetCall, call.AccountID, call.Key[:], unixMillis{&since}); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, forgetOldCalls, unixMillis{&since}, callsForgotten); err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, recordCall, call.AccountID, call.Key[:], unixMillis{&since}, call.Request[:], answer,
		schema.MaxIdempotencyKeys, unixMillis{&call.At})
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return schema.ErrTooManyKeys
}
