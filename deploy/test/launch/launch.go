// Package launch builds the programs of this module and runs programs as processes of a test: these ones, and servers that they are
// tested with. A process is killed when its test ends, and the last lines of its output are printed if the test has failed.
package launch

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Programs are the folders of the programs that are deployed.
var Programs = []string{"./api", "./deploy/migrate-to", "./deploy/standalone", "./edge", "./ingest"}

// Root returns the folder of go.mod.
var Root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			err = fs.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	panic(fmt.Sprintf("find go.mod: %v", err))
})

var (
	builtDir  string // the folder of the built programs
	buildOnce = sync.OnceValue(build)
)

// Program returns the path of a program, built from this source. It skips the test with the flag -short.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short leaves out tests of the built programs")
	}
	if err := buildOnce(); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(builtDir, name)
}

// build builds the programs as they are deployed, which is without the race detector.
func build() (err error) {
	if builtDir, err = os.MkdirTemp("", "linkstream-programs-"); err != nil {
		return err
	}
	if err := lookAtSource(); err != nil {
		return fmt.Errorf("look at the module's files: %w", err)
	}
	return Build(Root(), builtDir)
}

// Build builds the programs of the source in a folder into another one.
func Build(source, into string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", into + "/"}, Programs...)
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %q: %w\n%s", Programs, err, out)
	}
	return nil
}

// lookAtSource looks at each file that may be part of a program. The go command reuses the result of a test until a file that the
// test itself has looked at changes; the files that a compiler reads do not count.
func lookAtSource() error {
	return filepath.WalkDir(Root(), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != Root():
			return fs.SkipDir
		case entry.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".sql", ".html", ".css", ".js", ".json", ".mod", ".sum":
			_, err = os.Stat(path)
		}
		return err
	})
}

// Runner runs the tests of a package, as testing.M does.
type Runner interface{ Run() int }

// Of returns a runner that runs tests and then removes the built programs.
func Of(tests Runner) Runner { return runner{tests} }

type runner struct{ tests Runner }

func (r runner) Run() int {
	code := r.tests.Run()
	if builtDir != "" {
		if err := os.RemoveAll(builtDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}
