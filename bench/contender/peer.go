package contender

import (
	"fmt"
	"net/http"
	"net/url"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/workload"
)

// Peer is a program that already runs and redirects the visitors of one URL.
type Peer struct{ Name, URL string }

// Secure reports whether the peer serves HTTPS.
func (p Peer) Secure() bool { u, _ := url.Parse(p.URL); return u != nil && u.Scheme == "https" }

// Peer returns a running program under the starter's load. Its CPU time is measured if the processes that listen on its
// port are on this machine and may be read.
func (s *Starter) Peer(p Peer) (*Contender, error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	var processes []proc.Process
	if process, err := proc.Listening(p.Name, u.Host); err == nil {
		processes = []proc.Process{process}
	} else {
		s.Progress("%s: without CPU time: %v", p.Name, err)
	}
	return s.redirects(p.Name, u.Host, func(v *workload.Visits) Source {
		return v.To(u.Host, u.RequestURI(), checkRedirect)
	}, processes...), nil
}

// checkRedirect accepts every redirect.
func checkRedirect(a load.Answer) error {
	if a.Status < http.StatusMultipleChoices || a.Status >= http.StatusBadRequest || len(a.Location) == 0 {
		return fmt.Errorf("status %d, location %q, want a redirect: %.200q", a.Status, a.Location, a.Body)
	}
	return nil
}
