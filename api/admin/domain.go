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
		return "", schema.Errorf(schema.CodeInvalid, "%q is the default domain, which no account can have", host)
	}
	domain := customdomain.New(account.ID, host)
	if r.options.Verified {
		domain.VerifiedAt = domain.CreatedAt
	}
	err = r.stores.CreateDomain(ctx, &domain)
	if schema.ErrorCode(err) == schema.CodeConflict {
		err = r.conflict(ctx, account, host)
	}
	return strconv.FormatInt(domain.ID, 10), err
}

// conflict says why host cannot be added: the account has it already, or another account has verified it.
func (r *runner) conflict(ctx context.Context, account schema.Account, host string) error {
	domains, err := r.stores.DomainsByHost(ctx, host)
	if err != nil {
		return err
	}
	for _, domain := range domains {
		if domain.AccountID == account.ID {
			return schema.Errorf(schema.CodeConflict, "the account has %q already: domain %d", host, domain.ID)
		}
	}
	return schema.Errorf(schema.CodeConflict, "another account has verified %q", host)
}

func (r *runner) verifyDomain(ctx context.Context, args ...string) (string, error) {
	host, err := customdomain.ParseHost(args[0])
	if err != nil {
		return "", err
	}
	domains, err := r.stores.DomainsByHost(ctx, host)
	if err != nil {
		return "", err
	}
	if len(domains) == 0 {
		return "", schema.Errorf(schema.CodeNotFound, "no account has added %q", host)
	}
	for _, domain := range domains {
		if domain.VerifiedAt.IsZero() {
			err := r.stores.VerifyDomain(ctx, domain.ID, time.Now().UTC())
			return "", explain(err, schema.CodeConflict, "another account has verified %q", host)
		}
	}
	return "", nil // the only domain of this host is verified already
}
