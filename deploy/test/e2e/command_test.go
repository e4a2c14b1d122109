package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"linkstream/api/rest/resttest"
	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// commandUser runs the command linkstream as its user does, with a home folder.
type commandUser struct {
	home string
	env  []string // variables of each run
}

// newCommandUser returns a user who has not logged in.
func newCommandUser(t *testing.T) *commandUser {
	t.Helper()
	home := t.TempDir()
	return &commandUser{home: home, env: []string{"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"TZ=UTC"}}
}

// command returns a run of the command.
func (u *commandUser) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return launch.Command(launch.Program(t, "linkstream"), u.env, args...)
}

// try runs the command with input to its end. Its output is no terminal.
func (u *commandUser) try(t *testing.T, input string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := u.command(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errOut
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// run requires that the command succeeds, and returns its output.
func (u *commandUser) run(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := u.try(t, "", args...)
	if code != 0 {
		t.Fatalf("linkstream %q: exit code %d\n%s", args, code, errOut)
	}
	return out
}

// fails requires that the command fails with an exit code and says texts.
func (u *commandUser) fails(t *testing.T, code int, args []string, texts ...string) {
	t.Helper()
	out, errOut, got := u.try(t, "", args...)
	for _, text := range texts {
		if got != code || !strings.Contains(errOut, text) || out != "" {
			t.Errorf("linkstream %q: exit code %d, want %d and %q\n%s%s", args, got, code, text, out, errOut)
		}
	}
}

// commandOf returns a user who has logged in to the account of a system.
func (s *system) commandOf(t *testing.T) *commandUser {
	t.Helper()
	u := newCommandUser(t)
	if out, errOut, code := u.try(t, s.token+"\n", "login", s.api); code != 0 || out != s.email+"\n" {
		t.Fatalf("login: exit code %d\n%s%s", code, out, errOut)
	}
	return u
}

// TestCommand runs every command of linkstream in a script.
func TestCommand(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	t.Run("login and exit codes", func(t *testing.T) { testCommandLogin(t, s) })
	u := s.commandOf(t)
	t.Run("links", func(t *testing.T) { testCommandLinks(t, s, u) })
	t.Run("reports", func(t *testing.T) { testCommandReports(t, s, u) })
	t.Run("terminal", func(t *testing.T) { testCommandTerminal(t, s, u) })
	t.Run("export and import", func(t *testing.T) { testCommandTransfer(t, s, u) })
	t.Run("mcp", func(t *testing.T) { testCommandMCP(t, s, u) })
	t.Run("watch", func(t *testing.T) { testCommandWatch(t, s, u) }) // the last one, which restarts the system
}

func testCommandLogin(t *testing.T, s *system) {
	u := newCommandUser(t)
	u.fails(t, 2, []string{"list"}, "there is no address")
	u.fails(t, 2, []string{"list", "--url", s.api}, "there is no API token")
	u.fails(t, 2, []string{"list", "--url", "links.example.com"}, `there is no API token`)
	u.fails(t, 2, []string{"nonsense"}, "unknown command", "--help")
	u.fails(t, 2, []string{"show"}, "accepts 1 arg(s)")
	u.fails(t, 2, []string{"list", "--colour"}, "unknown flag")
	if _, errOut, code := u.try(t, "ls_wrong\n", "login", s.api); code != 1 || !strings.Contains(errOut, "invalid") {
		t.Errorf("login with another token: exit code %d\n%s", code, errOut)
	}
	if _, errOut, code := u.try(t, s.token, "login", "links.example.com"); code != 2 {
		t.Errorf("login without a scheme: exit code %d\n%s", code, errOut)
	}
	file := filepath.Join(u.home, "config", "linkstream", "login.json")
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a login that fails is remembered: %v", err)
	}

	u = s.commandOf(t)
	file = filepath.Join(u.home, "config", "linkstream", "login.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the login: %v, %v", info.Mode(), err)
	}
	u.run(t, "list")
	u.fails(t, 2, []string{"list", "--url", "http://127.0.0.1:1"}, "there is no API token") // not that of another address

	u = newCommandUser(t)
	tokenFile := filepath.Join(u.home, "token")
	writeFile(t, tokenFile, s.token+"\n")
	u.run(t, "list", "--url", s.api, "--token-file", tokenFile)
	u.env = append(u.env, "LINKSTREAM_URL="+s.api, "LINKSTREAM_TOKEN="+s.token)
	u.run(t, "list")
	u.fails(t, 1, []string{"show", "nothing-here"}, "no link with this hash")
	u.fails(t, 3, []string{"list", "--url", "http://127.0.0.1:1"}, "connection refused")
	u.fails(t, 1, []string{"list", "--url", s.edge}, "not one of the API") // the address of short links
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := u.run(t, "completion", shell); !strings.Contains(script, "linkstream") {
			t.Errorf("completion for %s: %s", shell, script)
		}
	}
	if words := u.run(t, "__complete", "sh"); !strings.Contains(words, "shorten\t") || !strings.Contains(words, "show\t") {
		t.Errorf("completions of sh: %s", words)
	}
}

func testCommandLinks(t *testing.T, s *system, u *commandUser) {
	short := u.run(t, "shorten", "https://example.com/a?b=c", "--alias", "made", "--title", "Made\u202ehere", "--tag",
		"sale,summer", "--expires", "2099-01-31", "--forward-query", "--set", `card={"title":"Look"}`)
	testkit.Equal(t, "what shorten prints", short, s.edge+"/made\n")
	if to := s.click(t, "made?x=y").Header.Get("Location"); to != "https://example.com/a?b=c&x=y" {
		t.Errorf("the link leads to %s", to)
	}
	link := s.owner().Get(t, "/api/v1/links/made").Body["link"].(object)
	if link["expires_at"] != "2099-01-31T00:00:00+00:00" || link["card"] == nil || link["title"] != "Made\u202ehere" {
		t.Errorf("the link is %v", link)
	}
	u.fails(t, 1, []string{"shorten", "https://example.com/", "--alias", "made"}, "alias: ", "in use")
	u.fails(t, 1, []string{"shorten", "nonsense", "--title", "\a"}, "long_url: ", "title: ")
	u.fails(t, 2, []string{"shorten", "https://example.com/", "--expires", "soon"}, "--expires")
	u.fails(t, 2, []string{"shorten", "https://example.com/", "--domain", "nobody.example"}, "no domain nobody.example")
	automatic := strings.TrimPrefix(strings.TrimSpace(u.run(t, "shorten", "https://example.com/other")), s.edge+"/")

	shown := u.run(t, "show", "made")
	for _, want := range []string{"\nlong_url\t", "original_url\thttps://example.com/a?b=c\n", "tags\tsale,summer\n",
		`title` + "\t" + `Made\u202ehere` + "\n", "max_clicks\t\n"} {
		if has := strings.Contains(shown, want); has == strings.HasPrefix(want, "\n") {
			t.Errorf("show prints %q: %v\n%s", want, has, shown)
		}
	}
	if raw := u.run(t, "show", "made", "--json"); decode(raw).(object)["link"].(object)["title"] != "Made\u202ehere" ||
		strings.Contains(raw, "\u202e") || strings.Count(raw, "\n") != 1 {
		t.Errorf("show --json prints %s", raw)
	}
	u.run(t, "edit", "made", "--title", "Edited", "--expires", "none", "--tag", "", "--long-url",
		"https://example.com/new", "--set", "is_active=false")
	link = s.owner().Get(t, "/api/v1/links/made").Body["link"].(object)
	if link["title"] != "Edited" || link["expires_at"] != nil || len(link["tags"].([]any)) != 0 ||
		link["original_url"] != "https://example.com/new" || link["is_active"] != false {
		t.Errorf("the edited link is %v", link)
	}
	u.fails(t, 2, []string{"edit", "made"}, "name what to change")
	u.fails(t, 1, []string{"edit", "made", "--set", "rules=5"}, "rules: ")
	if renamed := u.run(t, "rename", automatic, "Named/1"); !strings.Contains(renamed, "hash\tNamed/1\n") ||
		!strings.Contains(renamed, "former_hashes\t"+automatic+"\n") {
		t.Errorf("rename prints %s", renamed)
	}
	u.fails(t, 1, []string{"rename", automatic, "made"}, "alias: ", "in use")
	testkit.Equal(t, "the link by both names", u.run(t, "show", automatic), u.run(t, "show", "Named/1"))
	u.run(t, "rename", "Named/1", automatic)

	rows := u.run(t, "list")
	cells := strings.Split(strings.Split(rows, "\n")[1], "\t")
	if len(cells) != 6 || cells[0] != "made" || cells[2] != "off" || cells[4] != s.edge+"/made" ||
		cells[5] != "https://example.com/new" || !strings.HasPrefix(rows, automatic+"\t") {
		t.Errorf("list prints %q", rows)
	}
	if rows = u.run(t, "list", "--q", "other"); !strings.HasPrefix(rows, automatic+"\t") ||
		strings.Count(rows, "\n") != 1 {
		t.Errorf("list --q prints %q", rows)
	}
	u.run(t, "delete", "made", automatic)
	u.fails(t, 1, []string{"delete", "made"}, "made: ", "no link with this hash")
	if rows = u.run(t, "list") + u.run(t, "list", "--is-active"); rows != "" {
		t.Errorf("list prints %q", rows)
	}
	if rows = u.run(t, "list", "--deleted", "--json"); strings.Count(rows, "\n") != 2 ||
		!strings.Contains(rows, `"deleted_at"`) {
		t.Errorf("list --deleted prints %q", rows)
	}
	u.run(t, "restore", "made")
	u.fails(t, 1, []string{"restore", "nothing-here"}, "deleted no link")
	if rows = u.run(t, "list"); !strings.HasPrefix(rows, "made\t") {
		t.Errorf("list prints %q", rows)
	}
}

func testCommandReports(t *testing.T, s *system, u *commandUser) {
	u.run(t, "shorten", "https://example.com/", "--alias", "clicked", "--tag", "counted")
	for range 3 {
		s.click(t, "clicked", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
			"Referer", "https://news.example.org/")
	}
	s.owner().WaitTotal(t, "clicked", 3)
	for _, args := range [][]string{{"report", "clicked"}, {"report", "--tag", "counted"}} {
		report := "\n" + u.run(t, args...)
		for _, line := range []string{"total\tclicks\t3", "total\tpeople\t3", "total\tbots\t0", "browser\tFirefox\t3",
			"referrer\tnews.example.org\t3"} {
			if !strings.Contains(report, "\n"+line+"\n") {
				t.Errorf("linkstream %q lacks %q:%s", args, line, report)
			}
		}
		if days := strings.Count(report, "\nday\t"); days != 30 {
			t.Errorf("linkstream %q has %d days", args, days)
		}
	}
	if report := u.run(t, "report", "--domain", "default", "--browser", "Chrome"); !strings.Contains(report,
		"total\tclicks\t0\n") {
		t.Errorf("a report of another browser: %s", report)
	}
	if report := decode(u.run(t, "report", "clicked", "--json", "--interval", "hour", "--from", "2026-01-01", "--to",
		"2026-01-01")).(object); len(report["series"].([]any)) != 24 {
		t.Errorf("a report by hour: %v", report)
	}
	u.fails(t, 1, []string{"report", "clicked", "--limit", "0"}, "limit: ")

	file := filepath.Join(u.home, "code.svg")
	u.run(t, "qr", "clicked", "--out", file, "--size", "128", "--foreground", "0B3D2E")
	if drawn, err := os.ReadFile(file); err != nil || !bytes.Contains(drawn, []byte(`width="128"`)) {
		t.Errorf("the code is %s, %v", drawn, err)
	}
	if drawn := u.run(t, "qr", "clicked", "-o", "-"); !strings.HasPrefix(drawn, "<svg") {
		t.Errorf("the code is %s", drawn)
	}
	u.fails(t, 1, []string{"qr", "clicked", "-o", file, "--size", "1"}, "size: ")
}

// testCommandTransfer moves the links of one account to another one.
func testCommandTransfer(t *testing.T, s *system, u *commandUser) {
	s.owner().Shorten(t, object{"long_url": "https://example.com/rules", "custom_alias": "ruled", "title": "=1+1",
		"tags": []string{"b", "a"}, "card": object{"title": "A \"card\", with commas"},
		"rules":      []object{{"name": "r", "if": object{"device": []string{"mobile"}}, "url": "https://example.com/m"}},
		"expires_at": "2099-01-01T00:00:00+00:00"})
	u.run(t, "edit", "made", "--set", "is_active=false")
	for n := range 25 { // more than a page
		s.owner().Shorten(t, object{"long_url": fmt.Sprintf("https://example.com/%d", n),
			"custom_alias": fmt.Sprintf("l-%d", n)})
	}
	u.run(t, "rename", "l-3", "renamed/3")
	u.run(t, "rename", "renamed/3", "renamed-3")
	testkit.Equal(t, "links in a list of all", strings.Count(u.run(t, "list", "--all"), "\n"), 29)
	file := filepath.Join(u.home, "links.csv")
	u.run(t, "export", file)
	exported, err := os.ReadFile(file)
	testkit.Must(t, err)
	testkit.Equal(t, "the file of the command", string(exported),
		s.signIn(t).get(t, "/dashboard/export.csv").Raw)
	if lines := strings.Count(u.run(t, "export", "--json", "--tag", "counted"), "\n"); lines != 1 {
		t.Errorf("export --json prints %d lines", lines)
	}

	_, email := s.another(t, "importer")
	other := newCommandUser(t)
	other.env = append(other.env, "LINKSTREAM_URL="+s.api, "LINKSTREAM_TOKEN="+s.admin(t, "token", "add", email))
	_, errOut, code := other.try(t, string(exported), "import", "-", "--dry-run")
	if code != 0 || !strings.Contains(errOut, "29 links would be created, 0 not") || other.run(t, "list") != "" {
		t.Errorf("import --dry-run: exit code %d\n%s", code, errOut)
	}
	for _, alias := range rowsOf(t, string(exported)) { // on the default domain, an alias is of one account
		u.run(t, "delete", alias[1])
	}
	// A deleted alias stays with its account. So the owner imports the links again.
	for range 2 { // the second time, nothing is created
		if _, errOut, code = u.try(t, "", "import", file); code != 0 || !strings.Contains(errOut, "29 links created, 0 not") {
			t.Fatalf("import: exit code %d\n%s", code, errOut)
		}
	}
	again := rowsOf(t, u.run(t, "export"))
	for i, row := range rowsOf(t, string(exported)) {
		row[7], row[len(row)-1] = again[i][7], "0" // neither times of creation nor counts are imported
		testkit.Equal(t, "an imported row", again[i], row)
	}
	bad := "alias,long_url,expires_at,domain\nok-1,https://example.com/,,\nok-1,https://example.com/,,\n" +
		"x,nonsense,,\nlate,https://example.com/,soon,\nelsewhere,https://example.com/,,nobody.example\n"
	out, errOut, code := other.try(t, bad, "import", "-")
	want := []string{"3\tok-1\talias: ", "4\tx\talias: ", "long_url: ", "5\tlate\texpires_at: ",
		"6\telsewhere\tdomain: "}
	for _, text := range want {
		if code != 1 || !strings.Contains(out, text) || !strings.Contains(errOut, "1 links created, 4 not") {
			t.Errorf("import of invalid rows: exit code %d, want 1 and %q\n%s%s", code, text, out, errOut)
		}
	}
	if _, errOut, code = other.try(t, "shortcode,longurl\na,https://example.com/\n", "import", "-"); code != 2 ||
		!strings.Contains(errOut, `"shortcode" is none`) {
		t.Errorf("import of another service's file: exit code %d\n%s", code, errOut)
	}
}

func rowsOf(t *testing.T, file string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	testkit.Must(t, err)
	return rows[1:]
}

// testCommandMCP uses the command as an assistant does.
func testCommandMCP(t *testing.T, s *system, u *commandUser) {
	assistant := resttest.Connect(t, &mcp.CommandTransport{Command: u.command(t, "mcp")})
	if names := assistant.Names(t); len(names) != 8 {
		t.Errorf("tools: %q", names)
	}
	made := assistant.Tell(t, "shorten", resttest.Object{"long_url": "https://example.com/", "title": "By a tool"})
	hash := made["hash"].(string)
	shown := assistant.Tell(t, "show", resttest.Object{"hash": hash})["link"].(resttest.Object)
	testkit.Equal(t, "title", shown["title"], any("By a tool"))
	if _, raw, failed := assistant.Ask(t, "show", resttest.Object{"hash": "none"}); !failed {
		t.Errorf("an unknown link: %s", raw)
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() { assistant.Tell(t, "find", resttest.Object{"q": "tool"}) })
	}
	calls.Wait()
	of := resttest.Object{"hash": hash}
	image, err := assistant.CallTool(t.Context(), &mcp.CallToolParams{Name: "qr", Arguments: of})
	testkit.Must(t, err)
	if png, is := image.Content[0].(*mcp.ImageContent); !is || png.MIMEType != "image/png" {
		t.Errorf("qr: %v", image.Content[0])
	}
	assistant.Tell(t, "delete", resttest.Object{"hash": hash})
	testkit.Must(t, assistant.Close())

	const hello = `{"jsonrpc":"2.0","id":"a","method":"ping"}` + "\n"
	for input, want := range map[string]string{
		"": "", `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n": "",
		`{"jsonrpc":"2.0","id":1,"result":{}}`: "",
		hello:                                  `{"jsonrpc":"2.0","id":"a","result":{`,
		"nonsense\n":                           `"The body is not one message of JSON-RPC 2.0."`,
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{}}`: `"id":7`,
	} {
		if out, errOut, code := u.try(t, input, "mcp"); code != 0 || !strings.Contains(out, want) ||
			strings.Count(out, "\n") != min(1, len(want)) {
			t.Errorf("%q: exit code %d, %s%s", input, code, out, errOut)
		}
	}
	out, _, code := u.try(t, hello, "mcp", "--url", "http://127.0.0.1:1", "--token-file", tokenFileOf(t, s))
	if code != 0 || !strings.Contains(out, "connection refused") || !strings.Contains(out, `"id":"a"`) {
		t.Errorf("a service that cannot be reached: exit code %d, %s", code, out)
	}
	u.fails(t, 2, []string{"mcp", "--url", s.api, "--token-file", os.DevNull}, "not an API token")
	cmd := u.command(t, "mcp")
	input, err := cmd.StdinPipe()
	testkit.Must(t, err)
	defer input.Close()
	answers, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	_, err = io.WriteString(input, hello)
	testkit.Must(t, err)
	_, err = bufio.NewReader(answers).ReadString('\n')
	testkit.Must(t, err)
	testkit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	testkit.Must(t, cmd.Wait()) // though its input is open
}

func tokenFileOf(t *testing.T, s *system) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	writeFile(t, file, s.token+"\n")
	return file
}

// testCommandWatch watches a link while the system is restarted.
func testCommandWatch(t *testing.T, s *system, u *commandUser) {
	u.fails(t, 1, []string{"watch", "nothing-here"}, "no link with this hash")
	u.run(t, "shorten", "https://example.com/", "--alias", "watched")
	ctx, cancel := context.WithTimeout(t.Context(), launch.ReadyWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, launch.Program(t, "linkstream"), "watch", "watched")
	cmd.Env = append(launch.CleanEnv(), u.env...)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasSuffix(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("watch has ended before %q: %v", want, lines.Err())
	}
	next("\t0\t0\t0")
	s.click(t, "watched")
	next("\t1\t0\t1")
	s.stop(t)
	s.start(t)
	s.click(t, "watched")
	next("\t2\t0\t2")
	testkit.Must(t, cmd.Process.Signal(syscall.SIGINT))
	if lines.Scan() {
		t.Errorf("watch prints %q after its interruption", lines.Text())
	}
	testkit.Must(t, cmd.Wait())
}
