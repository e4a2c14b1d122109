package certificate

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/mholt/acmez/v3/acme"

	"linkstream/schema"
)

const noteTimeout = 10 * time.Second

// fetch puts the certificate of a host into memory, from the store if it is there, otherwise from the authority.
func (a *acmeSource) fetch(ctx context.Context, name string) error {
	cert, err := a.magic.CacheManagedCertificate(ctx, name)
	switch {
	case err == nil && !cert.Expired(): // certmagic renews it in time, in the background
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
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

// onEvent receives certmagic's events. certmagic holds the host's lock during the call, so no other edge orders for the
// same host.
func (a *acmeSource) onEvent(ctx context.Context, event string, data map[string]any) error {
	host, _ := data["identifier"].(string)
	switch event {
	case "cert_obtaining":
		err := a.admit(ctx, host)
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
		if renewal, _ := data["renewal"].(bool); renewal { // otherwise a flight fails
			a.log.Warn("cannot renew a certificate, the old one is served", "host", host, "error", err)
		}
	case "cached_managed_cert":
		if names, _ := data["sans"].([]string); len(names) > 0 {
			a.noteCached(names[0])
		}
	}
	return nil
}

var errNotVerified = errors.New("the domain is not verified")

// admit returns an error unless the store says that a host is verified: Hosts may have missed its loss.
func (a *acmeSource) admit(ctx context.Context, host string) error {
	if host == a.hosts.defaultHost {
		return nil
	}
	_, err := a.store.VerifiedDomain(ctx, host)
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return errNotVerified
	}
	return err
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
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errNotVerified):
		return "The domain is not verified."
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
	if len(a.cachedHosts) >= 2*maxCached { // most of their certificates have been removed
		clear(a.cachedHosts)
	}
	a.cachedHosts[host] = struct{}{}
}

// oldest returns the newest certificate of the host that is served from memory and is the first without a valid
// one, nil if there is no host. It asks the cache, since certmagic replaces renewed certificates there without an
// event. A host that was lost may still be in the cache.
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
