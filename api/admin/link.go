package admin

import (
	"context"

	"linkstream/api/customdomain"
	"linkstream/schema"
)

func (r *runner) takeDownLink(ctx context.Context, args ...string) (string, error) {
	return r.setTakenDown(ctx, args[0], true)
}

func (r *runner) putBackLink(ctx context.Context, args ...string) (string, error) {
	return r.setTakenDown(ctx, args[0], false)
}

func (r *runner) setTakenDown(ctx context.Context, hash string, takenDown bool) (string, error) {
	domainID, err := r.linkDomain(ctx)
	if err != nil {
		return "", err
	}
	err = r.stores.SetTakenDown(ctx, domainID, hash, takenDown)
	return "", explain(err, schema.CodeNotFound, "there is no link %q on this domain", hash)
}

// linkDomain returns the ID of the domain that the options name.
func (r *runner) linkDomain(ctx context.Context) (int64, error) {
	given, err := schema.ParseHost(r.options.Domain)
	if r.options.Domain == "" || err == nil && given == r.options.EdgeURL.Host() {
		return 0, nil
	}
	host, err := customdomain.ParseHost(r.options.Domain)
	if err != nil {
		return 0, err
	}
	domain, err := r.stores.VerifiedDomain(ctx, host)
	return domain.ID, explain(err, schema.CodeNotFound, "no account has verified %q", host)
}
