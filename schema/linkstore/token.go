package linkstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"linkstream/schema"
)

const (
	insertToken = `
	INSERT INTO tokens (account_id, name, prefix, digest, created_at, used_at, revoked_at, scopes, expires_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id`
	tokenColumns  = `t.id, t.account_id, t.name, t.prefix, t.digest, t.created_at, t.used_at, t.scopes, t.expires_at`
	tokenByDigest = `
	SELECT ` + tokenColumns + `, ` + accountColumns + ` FROM tokens t JOIN accounts a ON a.id = t.account_id
	WHERE t.digest = $1 AND t.revoked_at IS NULL`
	ownerOfToken = `SELECT account_id FROM tokens WHERE id = $1`
	revokeToken  = `UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1`
	endOfToken   = `SELECT expires_at FROM tokens WHERE id = $1 AND revoked_at IS NULL{for share}`
	keepShares   = `UPDATE shares SET token_id = 0 WHERE account_id = $1 AND token_id = $2`
	keepWebhooks = `UPDATE webhooks SET token_id = 0, expires_at = NULL WHERE account_id = $1 AND token_id = $2`
	endShares    = `DELETE FROM shares WHERE account_id = $1 AND token_id = $2`
	webhooksOf   = `SELECT id FROM webhooks WHERE account_id = $1 AND token_id = $2 AND active ORDER BY id{for update}`
	validTokens  = `
	SELECT t.id FROM tokens t JOIN accounts a ON a.id = t.account_id
	WHERE t.id {in: $1} AND t.revoked_at IS NULL AND NOT a.suspended AND (t.expires_at IS NULL OR t.expires_at > {now})`
	tokensOfAccount = `SELECT ` + tokenColumns + ` FROM tokens t
	WHERE t.account_id = $1 AND t.revoked_at IS NULL ORDER BY t.id DESC`
	useToken = `UPDATE tokens SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at < $2)`
)

func tokenFields(t *schema.Token) []any {
	return []any{&t.ID, &t.AccountID, &t.Name, &t.Prefix, bytes32{&t.Digest}, &t.CreatedAt, &t.UsedAt, &t.Scopes,
		&t.ExpiresAt}
}

// CreateToken implements schema.TokenStore.
func (s *Store) CreateToken(ctx context.Context, token *schema.Token) error {
	id, err := createToken(ctx, s.db, token.AccountID, token)
	if err != nil {
		return wrap(err, "create token %q of account %d", token.Name, token.AccountID)
	}
	token.ID = id
	return nil
}

func createToken(ctx context.Context, c Conn, accountID int64, t *schema.Token) (id int64, err error) {
	err = write(ctx, c, value(&id), insertToken, accountID, t.Name, t.Prefix, t.Digest[:], t.CreatedAt, t.UsedAt,
		t.RevokedAt, t.Scopes, t.ExpiresAt)
	return id, err
}

// TokenByDigest implements schema.TokenStore.
func (s *Store) TokenByDigest(
	ctx context.Context, digest [32]byte,
) (token schema.Token, account schema.Account, err error) {
	err = get(ctx, s.db, slices.Concat(tokenFields(&token), accountFields(&account)), tokenByDigest, digest[:])
	return token, account, wrap(err, "read token")
}

// RevokeToken implements schema.TokenStore.
func (s *Store) RevokeToken(ctx context.Context, tokenID int64, at time.Time, keep bool) error {
	err := s.updateInTurnOf(ctx, ownerOfToken, tokenID, func(tx Conn, account int64) error {
		if err := execOne(ctx, tx, revokeToken, tokenID, at); err != nil {
			return err
		}
		if keep {
			var b Batch
			b.exec(keepShares, account, tokenID)
			b.exec(keepWebhooks, account, tokenID)
			return tx.Send(ctx, &b)
		}
		hooks, err := list(ctx, tx, value[int64], webhooksOf, account, tokenID)
		if err != nil {
			return err
		}
		var b Batch
		b.exec(endShares, account, tokenID)
		for _, id := range hooks {
			b.exec(endWebhook, id, schema.OffToken)
			b.dropDeliveries(id)
		}
		return tx.Send(ctx, &b)
	})
	return wrap(err, "revoke token %d", tokenID)
}

// lockToken keeps a token from being revoked until the end of a transaction, and returns when it expires. There is no
// token with ID 0. CodeUnauthorized if it is revoked.
func lockToken(ctx context.Context, tx Conn, id int64) (expires time.Time, err error) {
	if id != 0 {
		err = get(ctx, tx, value(&expires), endOfToken, id)
	}
	if schema.ErrorCode(err) == schema.CodeNotFound {
		err = schema.Errorf(schema.CodeUnauthorized, "token %d is revoked", id)
	}
	return expires, err
}

// ValidTokens implements schema.TokenStore.
func (s *Store) ValidTokens(ctx context.Context, ids []int64) ([]int64, error) {
	valid, err := list(ctx, s.db, value[int64], validTokens, ids)
	return valid, wrap(err, "read which of %d tokens are valid", len(ids))
}

// Tokens implements schema.TokenStore.
func (s *Store) Tokens(ctx context.Context, accountID int64) ([]schema.Token, error) {
	tokens, err := list(ctx, s.db, tokenFields, tokensOfAccount, accountID)
	return tokens, wrap(err, "read tokens of account %d", accountID)
}

// UseTokens implements schema.TokenStore. It locks tokens in the order of their IDs, so that calls with several tokens
// in common do not deadlock.
func (s *Store) UseTokens(ctx context.Context, usedAt map[int64]time.Time) error {
	var b Batch
	for _, id := range slices.Sorted(maps.Keys(usedAt)) {
		b.exec(useToken, id, usedAt[id])
	}
	return wrap(s.db.Send(ctx, &b), "record the use of %d tokens", len(usedAt))
}
