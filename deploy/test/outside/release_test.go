//go:build deploy

package outside_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

const (
	version  = "7.8.9-rc.1"
	epoch    = "1790000000"
	sumsName = "SHA256SUMS"
	wheel    = "linkstream-7.8.9rc1-py3-none-any.whl" // with the version in the form of PEP 440
)

// inFolder returns a command in a folder, for the source as it is.
func inFolder(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch)
	return cmd
}

// makeRelease runs make release in a folder with the source and returns the files.
func makeRelease(t *testing.T, source, key string, args ...string) map[string][]byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	cmd := inFolder(t, source, "make", "--no-print-directory", "release", "VERSION="+version, "KEY="+key,
		"ARGS="+strings.Join(append(args, "-release.out", out), " "))
	cmd.Env = append(cmd.Env, "GOFLAGS=-buildvcs=false") // of the program itself: the copy is no repository
	output(t, cmd)
	files := map[string][]byte{}
	entries, err := os.ReadDir(out)
	testkit.Must(t, err)
	for _, e := range entries {
		files[e.Name()], err = os.ReadFile(filepath.Join(out, e.Name()))
		testkit.Must(t, err)
	}
	return files
}

// newKey makes a key to throw away. It returns its path and a file of allowed signers.
func newKey(t *testing.T) (key, signers string) {
	t.Helper()
	dir := t.TempDir()
	key, signers = filepath.Join(dir, "key"), filepath.Join(dir, "allowed_signers")
	output(t, inFolder(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", key))
	public, err := os.ReadFile(key + ".pub")
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(signers, []byte("release@linkstream "+string(public)), 0o600))
	return key, signers
}

// TestRelease makes a release for the platform of this machine. TestReleaseOfAllPlatforms, with the tag nightly, makes
// all of it.
func TestRelease(t *testing.T) {
	t.Parallel()
	key, signers := newKey(t)
	_, strangers := newKey(t)
	files := makeRelease(t, launch.Root(), key, "-release.platforms", "linux/"+runtime.GOARCH)
	t.Run("has every file", func(t *testing.T) {
		wantFiles(t, files, "SHA256SUMS", "SHA256SUMS.sig", wheel, "linkstream-V.tgz", "linkstream_V.cdx.json",
			"linkstream_V_"+runtime.GOARCH+".deb", "linkstream_V_linux_"+runtime.GOARCH+".tar.gz")
	})
	t.Run("has the same package when that is built elsewhere", func(t *testing.T) {
		source, name := copySource(t), "linkstream_"+version+"_"+runtime.GOARCH+".deb"
		output(t, inFolder(t, source, "deploy/systemd/build-deb", version))
		again, err := os.ReadFile(filepath.Join(source, "build", name))
		testkit.Must(t, err)
		testkit.Equal(t, "equal", bytes.Equal(files[name], again), true)
	})
	dir := t.TempDir()
	for name, content := range files {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	t.Run("is verified by its checksums and signature", func(t *testing.T) { testSignature(t, dir, signers, strangers) })
	t.Run("has programs that know their version", func(t *testing.T) { testArchive(t, files, "linux", runtime.GOARCH) })
	t.Run("has clients that work", func(t *testing.T) { testReleasedClients(t, dir) })
	t.Run("lists the modules in a valid CycloneDX document", func(t *testing.T) {
		testBOM(t, filepath.Join(dir, "linkstream_"+version+".cdx.json"))
	})
}

// wantFiles compares the names of files, in which V is the version.
func wantFiles(t *testing.T, files map[string][]byte, want ...string) {
	t.Helper()
	var names []string
	for name := range files {
		names = append(names, strings.ReplaceAll(name, version, "V"))
	}
	slices.Sort(names)
	testkit.Equal(t, "files", names, want)
}

func testSignature(t *testing.T, dir, signers, strangers string) {
	output(t, inFolder(t, dir, "sha256sum", "--check", "--strict", sumsName))
	verify := func(signers string) error {
		cmd := inFolder(t, dir, "ssh-keygen", "-Y", "verify", "-f", signers, "-I", "release@linkstream", "-n",
			"linkstream-release", "-s", sumsName+".sig")
		sums, err := os.Open(filepath.Join(dir, sumsName))
		testkit.Must(t, err)
		defer sums.Close()
		cmd.Stdin = sums
		return cmd.Run()
	}
	testkit.Must(t, verify(signers))
	if verify(strangers) == nil {
		t.Error("the signature is valid for another key")
	}
	sums, err := os.ReadFile(filepath.Join(dir, sumsName))
	testkit.Must(t, err)
	testkit.Equal(t, "files with checksums", bytes.Count(sums, []byte("\n")), 5)
	sums[0] ^= 1
	testkit.Must(t, os.WriteFile(filepath.Join(dir, sumsName), sums, 0o600))
	if verify(signers) == nil {
		t.Error("the signature is valid for other checksums")
	}
}

func testArchive(t *testing.T, files map[string][]byte, system, arch string) {
	name := "linkstream_" + version + "_" + system + "_" + arch
	zipped, err := gzip.NewReader(bytes.NewReader(files[name+".tar.gz"]))
	testkit.Must(t, err)
	var names []string
	dir := t.TempDir()
	for archive := tar.NewReader(zipped); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		testkit.Must(t, err)
		names = append(names, strings.TrimPrefix(head.Name, name+"/"))
		content, err := io.ReadAll(archive)
		testkit.Must(t, err)
		testkit.Equal(t, "time", head.ModTime.Unix(), 1790000000)
		if head.Mode != 0o755 {
			continue
		}
		program := filepath.Join(dir, path.Base(head.Name))
		testkit.Must(t, os.WriteFile(program, content, 0o700))
		wantPlatform(t, content, system, arch)
		if system == runtime.GOOS && arch == runtime.GOARCH {
			out := output(t, inFolder(t, dir, program, "--version"))
			if !strings.HasPrefix(out, path.Base(head.Name)+" "+version+" go") {
				t.Errorf("--version prints %q", out)
			}
		}
	}
	testkit.Equal(t, "files of "+name, names, []string{"CHANGELOG.md", "LICENSE", "README.md", "api", "edge", "ingest",
		"linkstream", "manual/backup.md", "manual/install.md", "manual/operate.md", "manual/reference.md", "manual/scale.md",
		"manual/watch.md", "migrate-to", "standalone"})
}

func wantPlatform(t *testing.T, program []byte, system, arch string) {
	t.Helper()
	if system == "darwin" {
		file, err := macho.NewFile(bytes.NewReader(program))
		testkit.Must(t, err)
		testkit.Equal(t, "machine", file.Cpu, macho.CpuArm64)
		return
	}
	file, err := elf.NewFile(bytes.NewReader(program))
	testkit.Must(t, err)
	testkit.Equal(t, "machine", file.Machine, map[string]elf.Machine{"amd64": elf.EM_X86_64,
		"arm64": elf.EM_AARCH64}[arch])
	if file.Section(".interp") != nil {
		t.Error("a program needs a dynamic linker")
	}
}

// testBOM validates the document against the schema of CycloneDX, and compares its checksums with go.sum.
func testBOM(t *testing.T, file string) {
	output(t, inFolder(t, ".", python(t), "testdata/release/validate.py", file))
	content, err := os.ReadFile(file)
	testkit.Must(t, err)
	var bom struct {
		Components []struct {
			Name, Version string
			Hashes        []struct{ Content string }
		}
	}
	testkit.Must(t, json.Unmarshal(content, &bom))
	sums, err := os.ReadFile(filepath.Join(launch.Root(), "go.sum"))
	testkit.Must(t, err)
	seen := map[string]bool{}
	for _, c := range bom.Components {
		seen[c.Name] = true
		if c.Name == "std" {
			testkit.Equal(t, "Go", "go"+c.Version, runtime.Version())
			continue
		}
		sum, err := hex.DecodeString(c.Hashes[0].Content)
		testkit.Must(t, err)
		if line := c.Name + " " + c.Version + " h1:" + base64.StdEncoding.EncodeToString(sum) +
			"\n"; !bytes.Contains(sums, []byte(line)) {
			t.Errorf("go.sum does not have %q", line)
		}
	}
	for name, want := range map[string]bool{"std": true, "github.com/jackc/pgx/v5": true, "modernc.org/sqlite": true,
		"github.com/valyala/fasthttp": true, "go.uber.org/goleak": false} {
		testkit.Equal(t, name, seen[name], want)
	}
}

// The workflows run on GitHub only. Here they are linted, and compared with what they call.
func TestWorkflows(t *testing.T) {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	bin, err := testengines.GoPrograms(t.Context(), log, "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12")
	testkit.Must(t, err)
	workflows, err := filepath.Glob(filepath.Join(launch.Root(), ".github/workflows/*.yaml"))
	testkit.Must(t, err)
	testkit.Equal(t, "workflows", len(workflows), 3)
	makefile, err := os.ReadFile(filepath.Join(launch.Root(), "Makefile"))
	testkit.Must(t, err)
	for _, file := range workflows {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "actionlint"), file).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("actionlint: %v\n%s", err, out)
			}
			content, err := os.ReadFile(file)
			testkit.Must(t, err)
			text := string(content)
			for _, uses := range regexp.MustCompile(`(?m)uses: (.*)$`).FindAllStringSubmatch(text, -1) {
				if !regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`).MatchString(uses[1]) {
					t.Errorf("%q is not pinned by commit, or not GitHub's own", uses[1])
				}
			}
			for _, target := range regexp.MustCompile(`make ([a-z-]+)`).FindAllStringSubmatch(text, -1) {
				if !strings.Contains(string(makefile), "\n"+target[1]+":") {
					t.Errorf("the Makefile has no target %q", target[1])
				}
			}
			jobs := strings.Count(text, "runs-on:")
			if limits := strings.Count(text, "timeout-minutes:"); jobs == 0 || limits != jobs ||
				!strings.Contains(text, "\npermissions:\n  contents: read\n") {
				t.Errorf("%d jobs, %d time limits, or more permissions than reading", jobs, limits)
			}
		})
	}
}
