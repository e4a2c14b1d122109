package rest

import "linkstream/schema"

type domainItem struct {
	ID        int64  `json:"id"`
	Host      string `json:"host"`
	Verified  bool   `json:"verified"`
	CreatedAt string `json:"created_at"`
}

// listDomains answers GET /api/v1/domains.
func (a *API) listDomains(c *call) error {
	return answerPage(c, "Domains cannot be read", a.links.Domains, func(d schema.Domain) domainItem {
		return domainItem{d.ID, d.Host, !d.VerifiedAt.IsZero(), formatTime(d.CreatedAt)}
	})
}
