//go:build linux && deploy

package outside_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

const (
	notRun = 17 // blocks of commands that cannot be run here
)

// pages are those of the manual, in order.
var pages = []string{"deploy/README.md", "deploy/manual/install.md", "deploy/manual/operate.md",
	"deploy/manual/move.md",
	"deploy/manual/watch.md", "deploy/manual/backup.md", "deploy/manual/scale.md", "deploy/manual/reference.md"}

// A block is what stands between two lines ``` of the manual. What follows ``` says what it is:
//
//   - "sh" are commands, which a test runs: TestManual, or the one that elsewhere names.
//   - "sh not run: REASON" are commands that no test can run.
//   - "ini", "json", "text" and "yaml" are no commands.
//
// A line `# → TEXT` in a block of commands requires that it prints TEXT.
type block struct {
	page    string
	line    int
	section string // the headings above it, such as "Backup and restore/Postgres"
	kind    string
	text    string
}

func (b block) String() string { return fmt.Sprintf("%s:%d (%s)", b.page, b.line, b.section) }

// expected returns the texts that the block prints.
func (b block) expected() (texts []string) {
	for _, found := range regexp.MustCompile(`(?m)^# → (.*)$`).FindAllStringSubmatch(b.text, -1) {
		texts = append(texts, found[1])
	}
	return texts
}

// parsePage returns the blocks of a page in Markdown, and what breaks its rules.
func parsePage(page, markdown string) (blocks []block, errs []error) {
	var headings []string
	open, list := false, false
	for i, line := range strings.Split(markdown, "\n") {
		line = strings.TrimRight(line, "\r")
		last := len(blocks) - 1
		switch {
		case strings.HasPrefix(line, "```") && open:
			open = false
		case strings.HasPrefix(line, "```"):
			open = true
			b := block{page: page, line: i + 1, section: strings.Join(headings, "/"), kind: line[3:]}
			if !regexp.MustCompile(`^(sh|sh not run: .{10,}|ini|json|text|yaml)$`).MatchString(b.kind) {
				errs = append(errs, fmt.Errorf("%v: %q is neither sh, sh not run: REASON, ini, json, text nor yaml", b, b.kind))
			}
			blocks = append(blocks, b)
		case open:
			blocks[last].text += line + "\n"
		case strings.HasPrefix(line, "#"):
			level := len(line) - len(strings.TrimLeft(line, "#"))
			headings = append(headings[:min(len(headings), max(level-2, 0))], strings.TrimSpace(line[level:]))
			if level == 1 {
				headings = nil
			}
			list = false
		case regexp.MustCompile(`^(- |\d+\. )`).MatchString(line):
			list = true
		case line != "" && line[0] != ' ':
			list = false
		case regexp.MustCompile(`^ *\t| {4}`).MatchString(line) && strings.HasPrefix(line, "    ") &&
			(!list || strings.HasPrefix(line, "       ")):
			errs = append(errs, fmt.Errorf("%s:%d: indented text is a block without a kind: put it between lines of ```", page,
				i+1))
		}
	}
	if open {
		errs = append(errs, fmt.Errorf("%v has no end", blocks[len(blocks)-1]))
	}
	return blocks, errs
}

// readManual returns the blocks of all pages, which must be all that the folder has.
func readManual(t *testing.T) (all []block) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(launch.Root(), "deploy/manual/*.md"))
	testkit.Must(t, err)
	testkit.Equal(t, "pages in deploy/manual", len(found), len(pages)-1)
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(launch.Root(), page))
		testkit.Must(t, err)
		blocks, errs := parsePage(page, string(text))
		for _, err := range errs {
			t.Error(err)
		}
		all = append(all, blocks...)
	}
	return all
}

// elsewhere names the tests of other packages that run commands of the manual, by section.
var elsewhere = map[string]struct{ file, test string }{
	"Several machines/Partitions":             {"deploy/test/outside/users_linux_test.go", "TestUsersOfEngines"},
	"Several machines/Who may write to Kafka": {"deploy/test/outside/users_linux_test.go", "TestUsersOfEngines"},
	"Backup and restore/Postgres":             {"deploy/test/e2e/restore_cluster_test.go", "TestRestoredEngines"},
	"Backup and restore/ClickHouse":           {"deploy/test/e2e/restore_cluster_test.go", "TestRestoredEngines"},
}

// TestEveryCommandIsRun requires that each block of commands is run by a test, or says why it is not.
func TestEveryCommandIsRun(t *testing.T) {
	without := 0
	ran := map[string]bool{}
	for _, section := range order {
		ran[section] = true
	}
	for _, b := range readManual(t) {
		switch {
		case strings.HasPrefix(b.kind, "sh not run:"):
			without++
			t.Logf("%v is %s", b, b.kind[3:])
		case b.kind == "sh" && !ran[b.section]:
			other, ok := elsewhere[b.section]
			if !ok {
				t.Errorf("%v has commands that no test runs", b)
				continue
			}
			source, err := os.ReadFile(filepath.Join(launch.Root(), other.file))
			testkit.Must(t, err)
			title := b.section[strings.LastIndex(b.section, "/")+1:]
			if !strings.Contains(string(source), "func "+other.test+"(") || !strings.Contains(string(source), `"`+title+`":`) {
				t.Errorf("%v: %s in %s does not run it", b, other.test, other.file)
			}
		}
	}
	testkit.Equal(t, "blocks that are not run", without, notRun)
}
