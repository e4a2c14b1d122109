//go:build engines

package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// TestReadmeWalkThrough runs the README's walk-through in one bash: every ```sh block below the heading that contains
// "Walk-through", up to the next heading of the same or a higher level, line by line.
//
//   - A line is a command, which must succeed. It continues on the next line if it ends with a backslash.
//   - A line `# → TEXT` below a command requires that the command's output contains TEXT. There may be several.
//   - Other comments and empty lines are ignored.
//   - `127.0.0.1:8080` and `127.0.0.1:8081` are replaced by the addresses of the edge and the API under test, and
//     `admin@localhost`, the account of a first start without settings, by the account under test.
//   - The commands run in the module's root, with LINKSTREAM_DATA set to the data under test.
func TestReadmeWalkThrough(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(launch.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := commandsBelow("Walk-through", string(readme))
	if len(steps) < 3 {
		t.Fatalf("the README's walk-through has %d commands, want at least three", len(steps))
	}
	s := startStandalone(t)
	here := strings.NewReplacer("127.0.0.1:8080", address(s.edge), "127.0.0.1:8081", address(s.api),
		"admin@localhost", s.email)
	shell := startShell(t, "LINKSTREAM_DATA="+s.data)
	expectations := 0
	for _, step := range steps {
		out := shell.run(t, here.Replace(step.command))
		for _, want := range step.prints {
			expectations++
			if want = here.Replace(want); !strings.Contains(out, want) {
				t.Errorf("%s\nprints\n%s\nwithout %q", step.command, out, want)
			}
		}
	}
	if expectations == 0 {
		t.Error("the README's walk-through has no line # → TEXT")
	}
}

// TestFirstCommand runs the curl command that a first start prints.
func TestFirstCommand(t *testing.T) {
	t.Parallel()
	s := newStandalone(t)
	s.programs[0].env = []string{"LINKSTREAM_EDGE_URL=" + s.edge}
	s.start(t)
	command := ""
	testkit.Eventually(t, "a curl command is printed", func() bool {
		command = curlForm.FindString(s.programs[0].process.Output.String())
		return command != ""
	})
	if out := startShell(t).run(t, command); !strings.Contains(out, `"success":true`) {
		t.Errorf("%s\nprints %s", command, out)
	}
}

// step is a command of the walk-through and texts that its output contains.
type step struct {
	command string
	prints  []string
}

// commandsBelow returns the commands in the blocks of sh below the heading that contains title.
func commandsBelow(title, markdown string) (steps []step) {
	level := 0                // of the heading, 0 outside its section
	block, sh := false, false // inside a fenced block, and inside one of sh
	proceed := false          // the last line ends with a backslash
	for line := range strings.Lines(markdown) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "```"):
			sh = !block && level > 0 && strings.TrimSpace(line) == "```sh"
			block = !block
		case !block && strings.HasPrefix(line, "#"):
			if depth := len(line) - len(strings.TrimLeft(line, "#")); strings.Contains(line, title) {
				level = depth
			} else if depth <= level {
				level = 0
			}
		case !sh:
		case proceed:
			steps[len(steps)-1].command += "\n" + line
			proceed = strings.HasSuffix(line, `\`)
		case strings.HasPrefix(line, "# → ") && len(steps) > 0:
			last := &steps[len(steps)-1]
			last.prints = append(last.prints, strings.TrimSpace(strings.TrimPrefix(line, "# → ")))
		case line == "" || strings.HasPrefix(line, "#"):
		default:
			steps = append(steps, step{command: line})
			proceed = strings.HasSuffix(line, `\`)
		}
	}
	return steps
}

// shell is a bash that reads commands from a pipe.
type shell struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// stepEnds is printed after each command, with its exit code.
const stepEnds = "--- the command ended with exit code "

func startShell(t *testing.T, env ...string) *shell {
	t.Helper()
	cmd := exec.Command("bash", "--norc", "--noprofile")
	cmd.Dir, cmd.Env = launch.Root(), append(launch.CleanEnv(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &shell{in: in, out: bufio.NewReader(out)}
}

// run runs a command, requires that it succeeds, and returns its output.
func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	fmt.Fprintf(s.in, "%s\nprintf '\\n%s%%d\\n' $?\n", command, stepEnds)
	var printed strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%s\nended the shell: %v\n%s", command, err, printed.String())
		}
		if code, ok := strings.CutPrefix(line, stepEnds); ok {
			if strings.TrimSpace(code) != "0" {
				t.Fatalf("%s\nfailed with exit code %s%s", command, code, printed.String())
			}
			return printed.String()
		}
		printed.WriteString(line)
	}
}
