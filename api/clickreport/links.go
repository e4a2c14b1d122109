package clickreport

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"linkstream/schema"
)

// Fields by which the report of an account selects links.
const (
	FieldTag    = "tag"
	FieldDomain = "domain_id" // 0: the default domain
)

// linkFinder is the part of schema.LinkStore and schema.DomainStore that SelectLinks needs.
type linkFinder interface {
	Domains(ctx context.Context, accountID int64) ([]schema.Domain, error)
	LinkIDs(ctx context.Context, accountID int64, filter schema.LinkFilter, limit int) ([]int64, error)
}

// SelectLinks returns the account's links that the fields of a query select, or nil if it has none of these fields.
// value is as in Parse. The problems are by field, in words for the client, as in Parse.
func SelectLinks(
	ctx context.Context, store linkFinder, accountID int64, value func(field string) (string, bool),
) (links []int64, problems map[string][]string, err error) {
	filter, problems := schema.LinkFilter{}, map[string][]string{}
	tag, _ := value(FieldTag)
	byTag := tag != "" // as in the list of links, an empty one is no filter
	if filter.Tag = tag; byTag && !schema.ValidTag(tag) {
		problems[FieldTag] = []string{"The tag must have 1 to 32 characters of a-z, 0-9, _ and -."}
	}
	domain, byDomain := value(FieldDomain)
	if byDomain {
		id, err := strconv.ParseInt(domain, 10, 64)
		filter.DomainID = &id
		if err != nil {
			problems[FieldDomain] = []string{"The domain id must be an integer."}
		} else if known, err := hasDomain(ctx, store, accountID, id); err != nil {
			return nil, nil, err
		} else if !known {
			problems[FieldDomain] = []string{"You have no domain with this id. The default domain has 0."}
		}
	}
	if len(problems) > 0 || !byTag && !byDomain {
		return nil, problems, nil
	}
	if links, err = store.LinkIDs(ctx, accountID, filter, schema.MaxReportLinks+1); err != nil {
		return nil, nil, err
	}
	if links == nil {
		links = []int64{}
	}
	if len(links) > schema.MaxReportLinks {
		field := FieldTag
		if !byTag {
			field = FieldDomain
		}
		problems[field] = []string{fmt.Sprintf("A report has at most %d links.", schema.MaxReportLinks)}
	}
	return links, problems, nil
}

// hasDomain reports whether an account has a domain, verified or not, or the domain is the default one.
func hasDomain(ctx context.Context, store linkFinder, accountID, id int64) (bool, error) {
	if id == 0 {
		return true, nil
	}
	domains, err := store.Domains(ctx, accountID)
	return slices.ContainsFunc(domains, func(d schema.Domain) bool { return d.ID == id }), err
}

// ByLink counts the clicks of each link of an account in the whole time of the report, or of some of them if links is
// not nil: of up to schema.MaxReportLinks links, in descending order of clicks. all is the number of clicks of all
// links.
func (r Request) ByLink(
	ctx context.Context, store schema.ReportStore, account int64, links []int64,
) (counts []schema.LinkCount, all int64, err error) {
	q := r.query(account, links)
	if len(q.Bounds) == 1 { // the zone has skipped the days
		return nil, 0, nil
	}
	q.Bounds = []time.Time{q.Bounds[0], q.Bounds[len(q.Bounds)-1]}
	q.Previous = q.Bounds[0].AddDate(0, 0, -1) // nothing is compared
	q.TopLinks, q.NoNames, q.Limit = true, true, schema.MaxReportLinks
	got, err := store.Report(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	return got.Links, got.Series[0].Total(), nil
}
