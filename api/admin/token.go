package admin

import (
	"context"
	"strconv"
	"strings"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
)

// tokenName is the name of tokens created by command, in the list of an account's tokens.
const tokenName = "command line"

func (r *runner) addToken(ctx context.Context, args ...string) (secret string, err error) {
	account, err := r.account(ctx, args[0])
	if err != nil {
		return "", err
	}
	secret, token := auth.NewToken(account.ID, tokenName)
	var unknown string
	if token.Scopes, unknown = schema.JoinScopes(r.options.Scopes); unknown != "" {
		return "", schema.Errorf(schema.CodeInvalid, "%q is no scope: scopes are %s", unknown,
			strings.Join(schema.Scopes(), ", "))
	}
	if r.options.Expires != "" {
		if token.ExpiresAt, err = schema.ParseTime(r.options.Expires); err != nil ||
			!token.ExpiresAt.After(time.Now()) {
			return "", schema.Errorf(schema.CodeInvalid, "%q is no time in the future such as 2030-12-31T12:00:00+01:00",
				r.options.Expires)
		}
	}
	return secret, r.stores.CreateToken(ctx, &token)
}

func (r *runner) revokeToken(ctx context.Context, args ...string) (string, error) {
	id, err := r.tokenID(ctx, args[0])
	if err != nil {
		return "", err
	}
	err = r.stores.RevokeToken(ctx, id, time.Now().UTC(), r.options.Keep)
	return "", explain(err, schema.CodeNotFound, "there is no token with ID %d", id)
}

// tokenID parses the ID of a token, or looks it up by the token itself: an operator who finds a leaked token has no ID.
func (r *runner) tokenID(ctx context.Context, arg string) (int64, error) {
	if strings.HasPrefix(arg, auth.TokenPrefix) {
		token, _, err := r.stores.TokenByDigest(ctx, auth.Digest(arg))
		return token.ID, explain(err, schema.CodeNotFound, "the token is unknown or already revoked")
	}
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return 0, schema.Errorf(schema.CodeInvalid, "%q is neither the ID of a token nor a token", arg)
	}
	return id, nil
}
