//go:build deploy

package upgrade_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

const (
	defaultDomain = "short.example.com" // of every system here
	customDomain  = "go.example.com"
	token         = "ls_upgrade0upgrade0upgrade0upgrade0upgrade0upgrade0"
	email         = "owner@example.com"
)

// system is an installation of linkstream. Its first account has the token.
type system struct {
	programs []*program
	edges    []string // host:port
	api      string   // host:port
}

func preset() map[string]string {
	return map[string]string{"BOOTSTRAP_EMAIL": email, "BOOTSTRAP_PASSWORD": "upgrade-password", "BOOTSTRAP_TOKEN": token,
		"EDGE_URL": "http://" + defaultDomain}
}

// embedded returns a standalone program on a data directory.
func embedded(t *testing.T, data string) *system {
	t.Helper()
	p := &program{service: "standalone", public: []string{testkit.FreeAddress(t), testkit.FreeAddress(t)},
		ops: testkit.FreeAddress(t), env: preset()}
	maps.Copy(p.env, map[string]string{"DATA": data, "EDGE_LISTEN": p.public[0], "API_LISTEN": p.public[1]})
	return &system{programs: []*program{p}, edges: p.public[:1], api: p.public[1]}
}

// services returns an empty system of services. Its variables lead to the engines.
func (e *installation) services(t *testing.T) *system {
	t.Helper()
	s := &system{}
	s.api = s.add(t, "api", e.env, "").public[0]
	s.add(t, "ingest", e.env, "")
	s.edges = []string{s.add(t, "edge", e.env, e.spool).public[0]}
	return s
}

// add adds a program of a service, which is not started.
func (s *system) add(t *testing.T, service string, env map[string]string, spool string) *program {
	t.Helper()
	p := &program{service: service, ops: testkit.FreeAddress(t), env: maps.Clone(env)}
	if service != "ingest" {
		p.public = []string{testkit.FreeAddress(t)}
		p.env[strings.ToUpper(service)+"_LISTEN"] = p.public[0]
	}
	if spool != "" {
		p.env["SPOOL_DIR"] = spool
	}
	s.programs = append(s.programs, p)
	return p
}

// program returns the first program of a service.
func (s *system) program(service string) *program {
	for _, p := range s.programs {
		if p.service == service || p.service == "standalone" {
			return p
		}
	}
	return nil
}

// start starts all programs and returns when all are ready.
func (s *system) start(t *testing.T, v version) {
	t.Helper()
	for _, p := range s.programs {
		p.launch(t, v, nil)
	}
	for _, p := range s.programs {
		p.awaitReady(t)
	}
}

func (s *system) stop(t *testing.T) {
	t.Helper()
	for _, p := range s.programs {
		p.stop(t)
	}
}

// link is a short link.
type link struct {
	Hash string
	Host string
}

// visit follows a link on an edge and returns after the answer, which must be a redirect.
func (l link) visit(edge string, agent, referrer string) error {
	req, err := http.NewRequest(http.MethodGet, "http://"+edge+"/"+l.Hash, nil)
	if err != nil {
		return err
	}
	req.Host = l.Host
	req.Header.Set("User-Agent", agent)
	if referrer != "" {
		req.Header.Set("Referer", referrer)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusFound {
		return fmt.Errorf("GET /%s of %s at %s: %s", l.Hash, l.Host, edge, res.Status)
	}
	return nil
}

// shorten creates a link through an api.
func shorten(api, alias string, fields map[string]any) error {
	fields["long_url"], fields["custom_alias"] = "https://example.com/"+alias, alias
	return create(api, "/api/v1/shorten", fields)
}

// create sends a POST request to an api, which must answer 201.
func create(api, path string, fields map[string]any) error {
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+api+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusCreated {
		err = fmt.Errorf("POST %s of %s: %s: %.500s", path, body, res.Status, answer)
	}
	return err
}

// createLinks creates links on the default domain and one on a custom domain.
func createLinks(t *testing.T, s *system) []link {
	t.Helper()
	testkit.Must(t, shorten(s.api, "first", map[string]any{}))
	testkit.Must(t, shorten(s.api, "second", map[string]any{}))
	testkit.Must(t,
		shorten(s.api, "third", map[string]any{"title": "Third", "tags": []string{"a", "b"}, "forward_query": true,
			"rules": []any{map[string]any{"name": "phones", "if": map[string]any{"device": []string{"mobile"}},
				"url": "https://example.com/phones"}},
			"variants": []any{map[string]any{"name": "one", "url": "https://example.com/1", "weight": 40},
				map[string]any{"name": "two", "url": "https://example.com/2", "weight": 60}},
			"card": map[string]any{"title": "Card", "description": "What is behind it", "image": nil}}))
	p := s.program("api")
	add := exec.Command(filepath.Join(string(p.version), p.service), "domain", "add", email, customDomain, "--verified")
	for name, value := range p.env {
		add.Env = append(add.Env, "LINKSTREAM_"+name+"="+value)
	}
	id, err := add.Output()
	testkit.Must(t, err)
	testkit.Must(t, shorten(s.api, "branded", map[string]any{"domain_id": json.Number(strings.TrimSpace(string(id)))}))
	return []link{{"first", defaultDomain}, {"second", defaultDomain}, {"third", defaultDomain}, {"branded", customDomain}}
}

// click follows the links in turn, one visit after the other, and returns at once after the last answer.
func click(t *testing.T, s *system, links []link, clicks int) {
	t.Helper()
	for i := range clicks {
		by := agents[i/len(links)%len(agents)]
		testkit.Must(t, links[i%len(links)].visit(s.edges[0], by.agent, by.referrer))
	}
}

// report returns what the API says about a link.
func (s *system) report(hash string) (body map[string]any, err error) {
	text, err := get("http://"+s.api+"/api/v1/stats/"+hash, token)
	if err != nil {
		return nil, err
	}
	return body, json.Unmarshal(text, &body)
}

// total returns the total_clicks of a report.
func total(report map[string]any) int64 {
	stats, _ := report["stats"].(map[string]any)
	n, ok := stats["total_clicks"].(float64)
	if !ok {
		return -1
	}
	return int64(n)
}

// wantTotals waits until each link has as many clicks as want says, or more, and requires that none has more, in its
// report and in the list.
func (s *system) wantTotals(t *testing.T, want map[string]int64) {
	t.Helper()
	for hash, clicks := range want {
		var n int64
		testkit.Succeeds(t, func() error {
			report, err := s.report(hash)
			if n = total(report); err == nil && n < clicks {
				err = fmt.Errorf("%q has %d clicks, want %d", hash, n, clicks)
			}
			return err
		})
		if n != clicks {
			t.Errorf("%q has %d clicks, want %d", hash, n, clicks)
		}
	}
	testkit.Equal(t, "clicks in the list", s.listed(t), want)
}

// answer returns what the API answers to a GET request, without what differs from call to call.
func (s *system) answer(t *testing.T, path string) any {
	t.Helper()
	text, err := get("http://"+s.api+path, token)
	testkit.Must(t, err)
	var fields map[string]any
	testkit.Must(t, json.Unmarshal(text, &fields))
	delete(fields, "counted_until")
	return fields
}

// listed returns the clicks of all links in the list.
func (s *system) listed(t *testing.T) map[string]int64 {
	t.Helper()
	type page struct {
		Data []struct {
			Hash   string
			Clicks int64
		}
		Meta struct {
			LastPage int `json:"last_page"`
		}
	}
	clicks := map[string]int64{}
	for number, last := 1, 1; number <= last; number++ {
		text, err := get(fmt.Sprintf("http://%s/api/v1/links?page=%d", s.api, number), token)
		testkit.Must(t, err)
		var p page
		testkit.Must(t, json.Unmarshal(text, &p))
		for _, item := range p.Data {
			clicks[item.Hash] = item.Clicks
		}
		last = p.Meta.LastPage
	}
	return clicks
}

// losses are metrics of the programs of this source that count lost clicks, or doubts about the log.
var losses = map[string][]string{
	"edge": {"linkstream_edge_clicks_dropped_total", "linkstream_edge_clicks_refused_total",
		"linkstream_edge_spool_damaged_total"},
	"ingest": {"linkstream_ingest_clicks_missing_total", "linkstream_ingest_records_dead_total",
		"linkstream_ingest_records_deleted_total", "linkstream_ingest_log_epochs_total"},
	"standalone": {"linkstream_edge_clicks_dropped_total", "linkstream_edge_clicks_refused_total",
		"linkstream_edge_spool_damaged_total", "linkstream_ingest_clicks_missing_total"},
}

// wantNoAlarm requires that no program of this source counts a loss or logs an error.
func (s *system) wantNoAlarm(t *testing.T) {
	t.Helper()
	for _, p := range s.programs {
		for _, name := range losses[p.service] {
			if n := p.metric(t, name); n != 0 {
				t.Errorf("%s of %s is %v", name, p.service, n)
			}
		}
		if p.process.Output.Contains("level=ERROR") {
			t.Errorf("%s has logged an error:\n%s", p.service, p.process.Output.String())
		}
	}
}
