package enrich_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/testkit"
)

const chromeOnWindows = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) " +
	"Chrome/131.0.0.0 Safari/537.36"

// knownAgent is a row of testdata/agents.tsv, a list of public agents. Its browser and system are "-" for programs
// whose names do not matter.
type knownAgent struct{ header, kind, device, os, browser string }

// knownAgents returns the rows of testdata/agents.tsv.
func knownAgents(t testing.TB) (all []knownAgent) {
	t.Helper()
	text, err := os.ReadFile("testdata/agents.tsv")
	testkit.Must(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 5 {
			t.Fatalf("%d columns in %q", len(columns), line)
		}
		all = append(all, knownAgent{columns[0], columns[1], columns[2], columns[3], columns[4]})
	}
	return all
}

// kindOf returns what an agent is taken for, in the words of testdata/agents.tsv.
func kindOf(a enrich.Agent) string {
	switch {
	case a.Device != schema.Bot:
		return "person"
	case a.DrawsPreviews:
		return "preview"
	default:
		return "bot"
	}
}

// manual has the list of misjudged agents.
const manual = "../../deploy/manual/reference.md"

func TestAgents(t *testing.T) {
	total, wrong, list := map[bool]int{}, map[bool]int{}, strings.Builder{}
	agents := knownAgents(t)
	for _, k := range agents {
		got, person := enrich.ParseAgent(k.header), k.kind == "person"
		total[person]++
		switch kind := kindOf(got); {
		case (kind == "person") != person:
			wrong[person]++
			fmt.Fprintf(&list, "- %s taken for a %s: `%s`\n", k.kind, kind, k.header)
			continue
		case kind != k.kind:
			t.Errorf("a %s is taken for a %s: %q", k.kind, kind, k.header)
		}
		if string(got.Device) != k.device || k.os != "-" && got.OS != k.os || k.browser != "-" && got.Browser != k.browser {
			t.Errorf("%s, %s, %s; want %s, %s, %s: %q",
				got.Device, got.OS, got.Browser, k.device, k.os, k.browser, k.header)
		}
	}
	if len(agents) < 400 || 500*wrong[true] > total[true] || 50*wrong[false] > total[false] {
		t.Errorf("%d people of %d and %d programs of %d are misjudged:\n%s",
			wrong[true], total[true], wrong[false], total[false], list.String())
	}
	want := fmt.Sprintf("Of %d public agents, %d of %d people and %d of %d programs are misjudged:\n\n%s\n",
		len(agents), wrong[true], total[true], wrong[false], total[false], list.String())
	if text, err := os.ReadFile(manual); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%s is stale (%v): it must say\n%s", manual, err, want)
	}
}

// Every name is one that a rule of a link may ask for.
func TestKnownNames(t *testing.T) {
	for _, k := range knownAgents(t) {
		if a := enrich.ParseAgent(k.header); !enrich.KnownBrowser(a.Browser) || !enrich.KnownOS(a.OS) {
			t.Errorf("%q is %q on %q, which no rule can name", k.header, a.Browser, a.OS)
		}
	}
	for _, name := range []string{"Opera Touch", "Huawei Browser", "Miui Browser", "Android browser", "TikTok App",
		"Headless Chrome", "Google Ads Bot", "PostmanRuntime"} { // rules of 1.0.0 may name them
		if !enrich.KnownBrowser(name) {
			t.Errorf("no rule can name %q", name)
		}
	}
	for _, name := range []string{"Windows Phone", "FreeBSD", "ChromeOS", "BlackBerry", "Harmony"} {
		if !enrich.KnownOS(name) {
			t.Errorf("no rule can name %q", name)
		}
	}
	for _, name := range []string{"", "chrome", "Netscape"} {
		if enrich.KnownBrowser(name) || enrich.KnownOS(name) {
			t.Errorf("%q is a known name", name)
		}
	}
}

func TestMalformedAgents(t *testing.T) {
	want := enrich.Agent{Device: schema.Bot, Browser: enrich.OtherBrowser, OS: schema.OtherName}
	for _, header := range []string{"", "\x00\xff(((;;;///\x01 \xc3\x28", strings.Repeat("([", 256), ")))", "[FB", "("} {
		testkit.Equal(t, fmt.Sprintf("agent of %q", header), enrich.ParseAgent(header), want)
	}
}

func BenchmarkParseAgent(b *testing.B) {
	agents := knownAgents(b)
	b.ReportAllocs()
	for i := range b.N {
		enrich.ParseAgent(agents[i%len(agents)].header)
	}
}
