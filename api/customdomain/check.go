package customdomain

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/schema"
)

// Grace is how long the records of a verified domain must be missing, and another account's records be present instead,
// before the other account gets the host. It starts when the other account proves its claim, and again with each proof
// of the first one.
const Grace = 7 * 24 * time.Hour

const (
	checkEvery = 24 * time.Hour
	retryAfter = time.Hour // after a look-up without a definite outcome, and after a process that died
	pollEvery  = time.Minute
	checkBatch = 16
	checkers   = 4 // look-ups of one process at the same time
)

// Run looks up the records of verified domains once a day, until ctx is done. Several processes share the work.
func (m *Manager) Run(ctx context.Context) {
	if _, usable := m.Target(); !usable {
		return // no domain can have the records
	}
	if err := m.verifier.resolver.err; err != nil {
		m.log.Warn("the records of custom domains are not checked", "error", err)
		return
	}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if err := m.checkDue(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("domains are not checked", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// checkDue checks the domains that are due.
func (m *Manager) checkDue(ctx context.Context) error {
	for {
		now := m.now()
		due, err := m.store.DomainsToCheck(ctx, now, now.Add(retryAfter), checkBatch)
		if err != nil {
			return err
		}
		var checks errgroup.Group
		checks.SetLimit(checkers)
		for _, domain := range due {
			checks.Go(func() error { return m.check(ctx, domain) })
		}
		if err := checks.Wait(); err != nil || len(due) < checkBatch {
			return err
		}
	}
}

// check looks up the records of a verified domain, notes the outcome, and gives the host to the account that has
// contested it for long enough.
func (m *Manager) check(ctx context.Context, domain schema.Domain) error {
	result, err := m.verifier.Verify(ctx, domain.Host, domain.Challenge)
	if err != nil { // DNS was not asked
		return nil
	}
	domain, err = m.note(ctx, domain, result)
	if err != nil || domain.ContestedBy == 0 {
		return ignoreGone(err)
	}
	_, err = m.decideContest(ctx, domain)
	return ignoreGone(err)
}

// ignoreGone drops the error of a domain that was deleted, transferred or released during the look-up.
func ignoreGone(err error) error {
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return nil
	}
	return err
}

// note stores the result of a look-up of a verified domain's records and returns the domain as it is then. Only
// definite outcomes count: failing name servers say nothing about the control of the host. A domain for which the
// operator has vouched is left as it is.
func (m *Manager) note(ctx context.Context, domain schema.Domain, result Result) (schema.Domain, error) {
	if domain.CheckAt.IsZero() || !result.OK() && !result.definite() {
		return domain, nil
	}
	now := m.now()
	if result.OK() {
		domain.FailingSince = time.Time{}
	} else if domain.FailingSince.IsZero() {
		domain.FailingSince = now
	}
	next := now.Add(checkEvery)
	if end := domain.ContestedAt.Add(Grace); domain.ContestedBy != 0 && end.Before(next) && end.After(now) {
		next = end
	}
	if err := m.store.NoteDomainCheck(ctx, domain.ID, domain.FailingSince, next); err != nil {
		return domain, err
	}
	if domain.ContestedBy != 0 && result.TXT.OK() && !result.OK() { // the proof is there again, only the way is missing
		if err := m.store.ContestDomain(ctx, domain.ID, 0, time.Time{}); err != nil {
			return domain, err
		}
	}
	return m.store.Domain(ctx, domain.ID)
}

// decideContest looks up the records of the claim that contests a failing domain. It gives the host to the claim if
// both stood for Grace, and ends the contest if the claim's own records are gone. It returns the updated claim, or a
// zero one if the contest has ended.
func (m *Manager) decideContest(ctx context.Context, held schema.Domain) (claim schema.Domain, err error) {
	claim, err = m.store.Domain(ctx, held.ContestedBy)
	gone := schema.ErrorCode(err) == schema.CodeNotFound
	if err != nil && !gone {
		return claim, err
	}
	if !gone {
		result, err := m.verifier.Verify(ctx, claim.Host, claim.Challenge)
		if err != nil {
			return claim, nil
		}
		gone = !result.OK() && result.definite()
		if !result.OK() && !gone {
			return claim, nil
		}
	}
	if gone {
		return schema.Domain{}, m.store.ContestDomain(ctx, held.ID, 0, time.Time{})
	}
	if m.now().Before(held.ContestedAt.Add(Grace)) {
		return claim, nil
	}
	return m.takeOver(ctx, claim, held)
}

func (m *Manager) takeOver(ctx context.Context, claim, held schema.Domain) (schema.Domain, error) {
	now := m.now()
	if err := m.store.TransferDomain(ctx, claim.ID, now, now.Add(checkEvery)); err != nil {
		return claim, err
	}
	m.log.Info("a domain has changed hands", "host", claim.Host, "from account", held.AccountID, "to account",
		claim.AccountID,
		"failing since", held.FailingSince)
	return m.store.Domain(ctx, claim.ID)
}

// contest is called for a claim whose records are right while another account has the host. It returns the updated
// claim: verified, if the grace period is over. Otherwise the error is CodeConflict and says what has to happen.
func (m *Manager) contest(ctx context.Context, claim schema.Domain) (schema.Domain, error) {
	held, err := m.store.VerifiedDomain(ctx, claim.Host)
	if err != nil {
		return claim, err
	}
	if held.CheckAt.IsZero() {
		return claim, conflict("The records are correct, but the operator of this service has given this domain to " +
			"another account.")
	}
	result, err := m.verifier.Verify(ctx, held.Host, held.Challenge)
	if err != nil {
		return claim, err
	}
	switch held, err = m.note(ctx, held, result); {
	case err != nil:
		return claim, err
	case result.TXT.OK():
		return claim, conflict(
			"The records are correct, but another account has verified this domain, and its TXT record is " +
				"still there. Remove that record to take the domain over.")
	case held.FailingSince.IsZero() || !result.TXT.definite():
		return claim, conflict("The records are correct, but another account has verified this domain, and the look-up of " +
			"its " +
			"record failed. Try again in a moment.")
	}
	if held.ContestedBy != 0 {
		winner, err := m.decideContest(ctx, held)
		switch {
		case err != nil:
			return claim, err
		case winner.ID == claim.ID && !winner.VerifiedAt.IsZero():
			return winner, nil
		case winner.ID == claim.ID:
			return claim, contested(held.ContestedAt)
		case winner.ID != 0:
			return claim, conflict("The records are correct, but a third account has claimed this domain before.")
		}
	}
	now := m.now()
	if err := m.store.ContestDomain(ctx, held.ID, claim.ID, now); err != nil {
		return claim, err
	}
	if err := m.store.NoteDomainCheck(ctx, held.ID, held.FailingSince, now.Add(checkEvery)); err != nil {
		return claim, err
	}
	return claim, contested(now)
}

func conflict(message string) error { return schema.ClientErrorf(schema.CodeConflict, "%s", message) }

// contested is the outcome for a claim that contests a domain since a time.
func contested(since time.Time) error {
	return schema.ClientErrorf(schema.CodeConflict,
		"The records are correct. Another account has this domain, but its records "+
			"are gone. If nothing changes, you get the domain on %s.",
		since.Add(Grace).UTC().Format("2 January 2006, 15:04 UTC"))
}

// TakeoverAt returns when a domain changes hands if DNS stays as it is: for a verified domain when the account loses
// it, for another one when the account gets it. It is zero for domains that are not contested.
func (m *Manager) TakeoverAt(ctx context.Context, domain schema.Domain) (time.Time, error) {
	if domain.VerifiedAt.IsZero() {
		held, err := m.store.VerifiedDomain(ctx, domain.Host)
		if err != nil || held.ContestedBy != domain.ID {
			return time.Time{}, ignoreGone(err)
		}
		domain = held
	}
	if domain.ContestedBy == 0 {
		return time.Time{}, nil
	}
	return domain.ContestedAt.Add(Grace), nil
}
