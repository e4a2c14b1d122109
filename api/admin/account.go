package admin

import (
	"context"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
)

func (r *runner) addAccount(ctx context.Context, args ...string) (password string, err error) {
	email, err := auth.ParseEmail(args[0])
	if err != nil {
		return "", err
	}
	password = auth.NewPassword()
	err = r.stores.CreateAccount(ctx, &schema.Account{
		Email: email, PasswordHash: auth.HashPassword(password), CreatedAt: time.Now().UTC(),
	})
	return password, explain(err, schema.CodeConflict, "account %q exists already", email)
}

func (r *runner) resetPassword(ctx context.Context, args ...string) (password string, err error) {
	account, err := r.account(ctx, args[0])
	if err != nil {
		return "", err
	}
	password = auth.NewPassword()
	return password, r.stores.SetPassword(ctx, account.ID, auth.HashPassword(password), 0)
}

func (r *runner) suspendAccount(ctx context.Context, args ...string) (string, error) {
	return r.setSuspended(ctx, args[0], true)
}

func (r *runner) reinstateAccount(ctx context.Context, args ...string) (string, error) {
	return r.setSuspended(ctx, args[0], false)
}

func (r *runner) setSuspended(ctx context.Context, email string, suspended bool) (string, error) {
	account, err := r.account(ctx, email)
	if err != nil {
		return "", err
	}
	return "", r.stores.SetSuspended(ctx, account.ID, suspended)
}

func (r *runner) account(ctx context.Context, email string) (schema.Account, error) {
	email, err := auth.ParseEmail(email)
	if err != nil {
		return schema.Account{}, err
	}
	account, err := r.stores.AccountByEmail(ctx, email)
	return account, explain(err, schema.CodeNotFound, "there is no account %q", email)
}
