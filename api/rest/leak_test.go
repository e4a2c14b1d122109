package rest_test

import (
	"context"
	"testing"
)

func TestDomainDeletedBeforeTheLinkIsStored(t *testing.T) {
	var s *testService
	var domain int64
	s = startFaulty(t, func(ctx context.Context, method string) error {
		if method == "CreateLink" {
			return s.links.DeleteDomain(ctx, domain)
		}
		return nil
	})
	owner := s.caller(t, "a@example.org")
	for _, alias := range []string{"", "chosen"} {
		domain = owner.addDomain(t, "go.example.org", true)
		fields := map[string]any{"long_url": "https://example.com/", "domain_id": domain}
		if alias != "" {
			fields["custom_alias"] = alias
		}
		owner.shorten(t, fields).wantInvalid(t, "domain_id")
	}
}
