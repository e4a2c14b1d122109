package certificate

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/mholt/acmez/v3/acme"

	"linkstream/schema"
)

const (
	// maxHostAttempts is per hour and host, for all edges together.
	maxHostAttempts = 5
	// maxHostFailures is how many failed validations of a host Let's Encrypt accepts per hour. An attempt that fails takes two: acmez tries
	// the second kind of challenge when the first one has failed.
	maxHostFailures = 5
	perFailure      = 2
	noteTimeout     = 10 * time.Second
)

// fetch puts the certificate of a host into memory, from the store if it is there, otherwise from the authority.
func (a *acmeSource) fetch(ctx context.Context, name string) error {
	if err := enter(ctx, a.loading); err != nil {
		return err
	}
	cert, err := a.magic.CacheManagedCertificate(ctx, name)
	leave(a.loading)
	switch {
	case err == nil && !cert.Expired(): // certmagic renews it in time, in the background
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := enter(ctx, a.issuing); err != nil {
		return err
	}
	defer leave(a.issuing)
	if err == nil {
		err = a.magic.RenewCertSync(ctx, name, false)
		a.cache.Remove([]string{cert.Hash()})
	} else {
		err = a.magic.ObtainCertSync(ctx, name)
	}
	if err != nil {
		return err
	}
	_, err = a.magic.CacheManagedCertificate(ctx, name)
	return err
}

func enter(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errBusy
	}
}

func leave(slots chan struct{}) { <-slots }

// onEvent receives certmagic's events. certmagic holds the host's lock meanwhile, so no other edge orders for the same host.
func (a *acmeSource) onEvent(ctx context.Context, event string, data map[string]any) error {
	host, _ := data["identifier"].(string)
	switch event {
	case "cert_obtaining":
		renewal, _ := data["renewal"].(bool)
		err := a.admit(ctx, host, renewal)
		if err != nil {
			a.refused.Inc()
			a.note(ctx, host, time.Time{}, err)
		}
		return err
	case "cert_obtained":
		a.issued.Inc()
		path, _ := data["certificate_path"].(string)
		expiry := a.expiryOf(ctx, path)
		a.note(ctx, host, expiry, nil)
		a.log.Info("certificate obtained", "host", host, "expires", expiry)
	case "cert_failed":
		a.failed.Inc()
		err, _ := data["error"].(error)
		a.note(ctx, host, time.Time{}, err)
		a.countFailure(ctx, host, err)
	case "cached_managed_cert":
		if names, _ := data["sans"].([]string); len(names) > 0 {
			a.noteCached(names[0])
		}
	}
	return nil
}

// refusal is an error that a host's owner may read.
type refusal string

func (r refusal) Error() string { return string(r) }

const errNotVerified refusal = "The domain is not verified."

// admit returns an error unless a certificate may be ordered now. Only the limits of the host apply to renewals, so that new hosts
// cannot use up their share.
func (a *acmeSource) admit(ctx context.Context, host string, renewal bool) error {
	var account int64
	if host != a.hosts.defaultHost {
		domain, err := a.store.VerifiedDomain(ctx, host)
		if schema.ErrorCode(err) == schema.CodeNotFound {
			return errNotVerified
		} else if err != nil {
			return err
		}
		account = domain.AccountID
	}
	type limit struct {
		what string
		key  string
		n    int // that the attempt adds now
		most int
		left int // that the attempt may add later
		unit string
	}
	limits := []limit{
		{"of this domain", "host " + host, 1, maxHostAttempts, 0, "certificates"},
		{"of this domain", failuresOf(host), 0, maxHostFailures, perFailure, "failed validations"},
	}
	if !renewal {
		limits = append(limits, limit{"of this service", "all", 1, a.cfg.MaxPerHour, 0, "certificates"})
		if account != 0 {
			limits = append(limits, limit{"of this account", fmt.Sprint("account ", account), 1, max(1, a.cfg.MaxPerHour/2), 0, "certificates"})
		}
	}
	hour := time.Now().UTC().Truncate(time.Hour)
	attempts := make([]schema.Attempts, len(limits))
	for i, l := range limits {
		attempts[i] = attemptsOf(l.key, hour, l.n)
	}
	totals, err := a.store.CountAttempts(ctx, attempts)
	if err != nil {
		return err
	}
	for i, l := range limits {
		if totals[i]+int64(l.left) > int64(l.most) {
			return refusal(fmt.Sprintf("The limit %s is reached: %d %s per hour. The next attempt is possible at %s UTC.",
				l.what, l.most, l.unit, hour.Add(time.Hour).Format("15:04")))
		}
	}
	return nil
}

func failuresOf(host string) string { return "failures of host " + host }

func attemptsOf(key string, hour time.Time, n int) schema.Attempts {
	return schema.Attempts{Key: sha256.Sum256([]byte("certificate " + key)), Window: hour, N: int64(n)}
}

// countFailure counts perFailure failed validations if the authority has refused an attempt.
func (a *acmeSource) countFailure(ctx context.Context, host string, failure error) {
	if _, refused := errors.AsType[acme.Problem](failure); !refused {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	hour := time.Now().UTC().Truncate(time.Hour)
	if _, err := a.store.CountAttempts(ctx, []schema.Attempts{attemptsOf(failuresOf(host), hour, perFailure)}); err != nil {
		a.log.Warn("cannot count a failed validation", "host", host, "error", err)
	}
}

// note stores the outcome of an attempt for the host's owner. expiry is zero if there is no new certificate.
func (a *acmeSource) note(ctx context.Context, host string, expiry time.Time, failure error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	state := schema.CertificateState{Host: host, ExpiresAt: expiry, AttemptedAt: time.Now(), Error: explain(failure)}
	if err := a.store.NoteCertificate(ctx, state); err != nil {
		a.log.Warn("cannot store the state of a certificate", "host", host, "error", err)
	}
}

// explain returns the reason of a failed attempt for the host's owner. Details for the operator are in the log only.
func explain(err error) (text string) {
	var problem acme.Problem
	var refused refusal
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return string(refused)
	case errors.As(err, &problem):
		text = problem.Detail
		for _, sub := range problem.Subproblems {
			text += " " + sub.Detail
		}
		if text == "" {
			text = problem.Type
		}
	default:
		text = "The certificate authority does not answer."
	}
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
	return strings.ToValidUTF8(text[:min(len(text), schema.MaxCertificateErrorLen)], "")
}

// expiryOf returns when a certificate in the store expires, the zero time if it cannot be read.
func (a *acmeSource) expiryOf(ctx context.Context, path string) time.Time {
	text, err := a.magic.Storage.Load(ctx, path)
	if err != nil {
		return time.Time{}
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return leaf.NotAfter
}

// noteCached remembers that memory has a certificate of a host.
func (a *acmeSource) noteCached(host string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cachedHosts) >= 2*maxCached { // most are those of certificates that have been removed
		clear(a.cachedHosts)
	}
	a.cachedHosts[host] = struct{}{}
}

// oldest returns the newest certificate of the host that is served from memory and is the first without a valid one, nil if there is no
// host. It asks the cache, since certmagic replaces renewed certificates there without an event. A host that was lost may still be in the cache.
func (a *acmeSource) oldest() (first *x509.Certificate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for host := range a.cachedHosts {
		var newest *x509.Certificate
		for _, cert := range a.cache.AllMatchingCertificates(host) {
			if cert.Leaf != nil && (newest == nil || cert.Leaf.NotAfter.After(newest.NotAfter)) {
				newest = cert.Leaf
			}
		}
		if newest == nil { // certmagic has made room for other certificates
			delete(a.cachedHosts, host)
			continue
		}
		if known, _ := a.hosts.Known(host); known && (first == nil || newest.NotAfter.Before(first.NotAfter)) {
			first = newest
		}
	}
	return first
}
