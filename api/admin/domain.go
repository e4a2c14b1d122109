package admin

import (
	"context"
	"strconv"
	"time"

	"linkstream/api/customdomain"
	"linkstream/schema"
)

func (r *runner) addDomain(ctx context.Context, args ...string) (id string, err error) {
	account, err := r.account(ctx, args[0])
	if err != nil {
		return "", err
	}
	host, err := customdomain.ParseHost(args[1])
	if err != nil {
		return "", err
	}
	if host == string(r.options.EdgeURL.Host()) {
		return "", schema.Errorf(schema.CodeInvalid, "%q is the default domain, which is nobody's", host)
	}
	domain := customdomain.New(account.ID, host)
	if r.options.Verified {
		domain.VerifiedAt = domain.CreatedAt
	}
	err = r.stores.CreateDomain(ctx, &domain)
	if schema.ErrorCode(err) == schema.CodeConflict {
		err = r.claimed(ctx, account, host)
	}
	return strconv.FormatInt(domain.ID, 10), err
}

// claimed says why host cannot be claimed for account: the account has done so before, or another one holds the host.
func (r *runner) claimed(ctx context.Context, account schema.Account, host string) error {
	claims, err := r.stores.DomainsByHost(ctx, host)
	if err != nil {
		return err
	}
	for _, domain := range claims {
		if domain.AccountID == account.ID {
			return schema.Errorf(schema.CodeConflict, "the account claims %q already: domain %d", host, domain.ID)
		}
	}
	return schema.Errorf(schema.CodeConflict, "another account holds %q", host)
}

func (r *runner) verifyDomain(ctx context.Context, args ...string) (string, error) {
	host, err := customdomain.ParseHost(args[0])
	if err != nil {
		return "", err
	}
	claims, err := r.stores.DomainsByHost(ctx, host)
	if err != nil {
		return "", err
	}
	if len(claims) == 0 {
		return "", schema.Errorf(schema.CodeNotFound, "no account claims %q", host)
	}
	for _, domain := range claims {
		if domain.VerifiedAt.IsZero() {
			err := r.stores.VerifyDomain(ctx, domain.ID, time.Now().UTC())
			return "", because(err, schema.CodeConflict, "another account holds %q", host)
		}
	}
	return "", nil // the only claim is verified already
}
