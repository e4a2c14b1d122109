package scenario

import (
	"context"
	"fmt"
	"time"

	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const (
	verifyPoll = 200 * time.Millisecond
	// maxListed is the largest number of links, the newest ones, whose counts are compared: the pages of the list are read
	// one by one. Popular links are spread evenly over all links.
	maxListed = 100_000
)

// verify checks that the service has counted each answered redirect exactly once.
func (r *run) verify(ctx context.Context, s *system.Service, visits *workload.Visits) error {
	compared := min(visits.Links.Count, maxListed)
	r.logf("comparing the counts of %d links with the answers", compared)
	want, popular := int64(0), visits.MostVisited()
	for link := visits.Links.Count - compared; link < visits.Links.Count; link++ {
		want += visits.Clicks(link)
	}
	deadline := time.Now().Add(system.AwaitTimeout)
	tick := time.NewTicker(verifyPoll)
	defer tick.Stop()
	for {
		listed, wrong, err := listedClicks(ctx, s, visits, compared)
		if err != nil {
			return err
		}
		inStats, err := s.API.Clicks(ctx, visits.Links.Hash(popular))
		if err != nil {
			return err
		}
		if listed >= want || time.Now().After(deadline) {
			r.check(fmt.Sprintf("clicks of the newest %d links in the list", compared), want, listed)
			r.check("links whose clicks in the list differ from their answers", 0, wrong)
			r.check("clicks of the most visited link in its statistics", visits.Clicks(popular), inStats)
			break
		}
		<-tick.C // a service that was already running may still be counting
	}
	return r.checkCounters(ctx, s.Counted)
}

// listedClicks returns the clicks of the newest links in the list, and the number of links whose clicks differ from
// their answers.
func listedClicks(ctx context.Context, s *system.Service, visits *workload.Visits, count int) (sum, wrong int64,
	err error) {
	found, last := 0, 1
	for page := 1; page <= last && found < count; page++ {
		links, err := s.API.Links(ctx, page)
		if err != nil {
			return 0, 0, err
		}
		last = links.Meta.LastPage
		for _, item := range links.Data {
			link, ours := visits.Links.Index(item.Hash)
			if !ours || found == count {
				continue
			}
			found++
			sum += item.Clicks
			if item.Clicks != visits.Clicks(link) {
				wrong++
			}
		}
	}
	return sum, wrong + int64(count-found), nil
}
