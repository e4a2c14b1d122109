// Package launch builds the programs of this module and runs programs as processes of a test: these ones, and servers
// that they are tested with. A process is killed when its test ends, and the last lines of its output are printed if
// the test has failed.
package launch

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"linkstream/schema/testkit"
)

// Programs are the folders of the programs that serve.
var Programs = []string{"./api", "./deploy/migrate-to", "./deploy/standalone", "./edge", "./ingest"}

// usersCommand is the folder of the command linkstream.
const usersCommand = "./api/cli/linkstream"

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

// built are the programs that tests of this process have used.
var built struct {
	sync.Mutex
	dir      string
	programs map[string]error // to the error of its build
}

// Program returns the path of a program, the last part of its folder's name, built from this source as it is deployed:
// without the race detector. It is built once per process.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		built.programs = map[string]error{}
		testkit.Must(tb, lookAtSource())
		var err error
		built.dir, err = os.MkdirTemp("", "linkstream-programs-")
		testkit.Must(tb, err)
	}
	err, done := built.programs[name]
	if !done {
		err = Build(Root(), built.dir, folderOf(name))
		built.programs[name] = err
	}
	testkit.Must(tb, err)
	return filepath.Join(built.dir, name)
}

// folderOf returns the folder of a program of this module.
func folderOf(name string) string {
	for _, folder := range append(Programs, usersCommand) {
		if path.Base(folder) == name {
			return folder
		}
	}
	return "./" + name
}

// Build builds programs of the source in a folder into another one. args are flags of go build and the programs'
// folders.
func Build(source, into string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", into + "/"}, args...)...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %q: %w\n%s", args, err, out)
	}
	return nil
}

// lookAtSource looks at each file that may be part of a program. The go command reuses the result of a test until a
// file that the test itself has looked at changes; the files that a compiler reads do not count.
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
	if built.dir != "" {
		if err := os.RemoveAll(built.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}
