//go:build deploy

package outside_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// TestPrometheusReadsLinks starts a Prometheus with the configuration of the manual, which reads an account's clicks.
func TestPrometheusReadsLinks(t *testing.T) {
	t.Parallel()
	s := startClientService(t)
	s.click(t, "watched", "")
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "prometheus.yaml")
	testkit.Must(t, os.WriteFile(token, []byte(clientToken+"\n"), 0o600))
	page, err := os.ReadFile("../../manual/operate.md")
	testkit.Must(t, err)
	_, config, found := strings.Cut(string(page), "```yaml\nscrape_configs:\n")
	config, _, _ = strings.Cut(config, "```")
	here := strings.NewReplacer("/etc/prometheus/linkstream-token", token, "scheme: https", "scheme: http",
		"links.example.org", strings.TrimPrefix(s.api, "http://"))
	testkit.Must(t, os.WriteFile(file, []byte("global: {scrape_interval: 1s}\nscrape_configs:\n"+here.Replace(config)),
		0o600))
	testkit.Equal(t, "a configuration in the manual", found, true)
	runIn(t, dir, nil, prometheusProgram(t, "promtool"), "check", "config", file)
	addr := testkit.FreeAddress(t)
	launch.Start(t, launch.Command(prometheusProgram(t, "prometheus"), nil, "--web.listen-address="+addr,
		"--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data")))
	query := url.Values{"query": {`linkstream_link_clicks_total`}}
	testkit.SucceedsWithin(t, launch.ReadyWithin, func() error {
		body, err := launch.Get("http://" + addr + "/api/v1/query?" + query.Encode())
		if err != nil {
			return err
		}
		var answer struct{ Data struct{ Result []sample } }
		testkit.Must(t, json.Unmarshal([]byte(body), &answer))
		counts := map[string]any{}
		for _, series := range answer.Data.Result {
			m := series.Metric
			counts[fmt.Sprint(m["hash"], " ", m["domain"], " ", m["kind"])] = series.Value[1]
		}
		if len(counts) != 2 || counts["watched 127.0.0.1 people"] != "1" || counts["watched 127.0.0.1 bots"] != "0" {
			return fmt.Errorf("clicks %v", counts)
		}
		return nil
	})
	targets, err := launch.Get("http://" + addr + "/api/v1/targets")
	testkit.Must(t, err)
	if !strings.Contains(targets, `"lastError":""`) {
		t.Error(targets)
	}
}

// referenceExample is an example in a language, and the operation before it.
var referenceExample = regexp.MustCompile(`<div class="stack" id="(\w+)">|data-language="(\w+)">([^<]*)</pre>`)

// TestReferenceExamples runs examples of the API reference as they are pasted. The tests of api/rest send the requests
// of all of them.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	s := startClientService(t)
	s.click(t, "summer-sale", "")
	status, page := callAPI(t, s.api, "", http.MethodGet, "/api/v1/docs", "")
	testkit.Equal(t, "status", status, http.StatusOK)
	commands := map[string][]string{"curl": {"sh", "-eu", "example.sh"}, "Go": {"go", "run", "example.go"},
		"Python": {"python3", "example.py"}, "TypeScript": {"node", "example.mjs"}} // it needs no types
	wanted := map[string]string{"createShare": `"success":true`, "getLink": `"hash":"summer-sale"`,
		"describe": `"openapi": "3.1.0"`}
	operation, ran := "", 0
	for _, part := range referenceExample.FindAllStringSubmatch(page, -1) {
		if part[1] != "" {
			operation = part[1]
			continue
		}
		want, command := wanted[operation], commands[part[2]]
		if want == "" {
			continue
		}
		dir := t.TempDir()
		file := filepath.Join(dir, command[len(command)-1])
		testkit.Must(t, os.WriteFile(file, []byte(html.UnescapeString(part[3])), 0o600))
		out := runIn(t, dir, []string{"LINKSTREAM_TOKEN=" + clientToken}, command[0], command[1:]...)
		if !strings.Contains(out, want) {
			t.Errorf("%s in %s prints\n%.500s", operation, part[2], out)
		}
		ran++
	}
	if ran < len(wanted)*len(commands) {
		t.Errorf("only %d examples", ran)
	}
}
