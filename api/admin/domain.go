package admin

import (
	"context"
	"slices"
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
	host, err := r.customHost(args[1])
	if err != nil {
		return "", err
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

// customHost returns the canonical form of a host that an account can have.
func (r *runner) customHost(arg string) (string, error) {
	host, err := customdomain.ParseHost(arg)
	if err == nil && host == string(r.options.EdgeURL.Host()) {
		err = schema.Errorf(schema.CodeInvalid, "%q is the default domain, which no account can have", host)
	}
	return host, err
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
	// The only domain of this host is verified already. From now on the operator vouches for it.
	return "", r.stores.NoteDomainCheck(ctx, domains[0].ID, time.Time{}, time.Time{})
}

// removeDomain leaves the domain, unverified, and its links with their statistics to the account: visitors do not find
// them any more. The account, or another one, gets the host by proving it again.
func (r *runner) removeDomain(ctx context.Context, args ...string) (string, error) {
	host, err := customdomain.ParseHost(args[0])
	if err != nil {
		return "", err
	}
	domain, err := r.stores.VerifiedDomain(ctx, host)
	if err != nil {
		return "", explain(err, schema.CodeNotFound, "no account has verified %q", host)
	}
	return "", r.stores.ReleaseDomain(ctx, domain.ID, time.Now().UTC())
}

// transferDomain gives the host to an account, which begins without links on it. The other account keeps its links and
// their counts, as after removeDomain.
func (r *runner) transferDomain(ctx context.Context, args ...string) (id string, err error) {
	host, err := r.customHost(args[0])
	if err != nil {
		return "", err
	}
	account, err := r.account(ctx, args[1])
	if err != nil {
		return "", err
	}
	domains, err := r.stores.DomainsByHost(ctx, host)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(domains, func(d schema.Domain) bool { return d.AccountID == account.ID })
	if i < 0 {
		i, domains = 0, []schema.Domain{customdomain.New(account.ID, host)}
		if err := r.stores.CreateDomain(ctx, &domains[0]); err != nil {
			return "", err
		}
	}
	err = r.stores.TransferDomain(ctx, domains[i].ID, time.Now().UTC(), time.Time{})
	return strconv.FormatInt(domains[i].ID, 10), err
}
