package dashboard_test

import (
	"context"
	"net/http"
	"testing"

	"linkstream/schema"
)

func TestDomainDeletedBeforeTheLinkIsStored(t *testing.T) {
	var s *testService
	var domain schema.Domain
	s = startFaulty(t, func(ctx context.Context, method string) error {
		if method == "CreateLink" {
			return s.links.DeleteDomain(ctx, domain.ID)
		}
		return nil
	})
	b := s.signedIn(t)
	domain = s.addDomain(t, "go.example.org", true)
	b.post("/dashboard/links", "long_url", "https://example.com/", "domain_id", id(domain.ID)).want(t,
		http.StatusUnprocessableEntity, "The domain must be a verified domain of yours.")
}
