package testengines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// ChromiumEnv is an environment variable: the path of a Chromium or a Chrome that tests use.
const ChromiumEnv = "LINKSTREAM_TEST_CHROMIUM"

// chromiumOldest is the first version whose new headless mode runs the same browser as the window mode.
const chromiumOldest = 112

// chromiumNames are the program's names on the path.
var chromiumNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Chromium describes an installed browser. It does not run yet.
type Chromium struct {
	Version string
	Source  string   // where it comes from: an environment variable or a folder
	Path    string   // of the program
	Env     []string // variables that it needs, in addition to those of this process
}

// String returns one line that describes the browser.
func (c *Chromium) String() string {
	return fmt.Sprintf("chromium %s (%s) at %s", c.Version, c.Source, c.Path)
}

// FindChromium returns the browser that ChromiumEnv names, one of this machine, or Debian's, which it unpacks in the
// user's cache, in this order. The error lists what was tried.
func FindChromium(ctx context.Context, log *slog.Logger) (*Chromium, error) {
	if path := os.Getenv(ChromiumEnv); path != "" {
		c := &Chromium{Source: ChromiumEnv, Path: path}
		return c, c.check(ctx)
	}
	errs := []error{errors.New("find chromium on this machine: no working one on the path")}
	for _, name := range chromiumNames {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		c := &Chromium{Source: filepath.Dir(path), Path: path}
		if err = c.check(ctx); err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	c, err := installChromium(ctx, log)
	if err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	return c, nil
}

var chromiumVersion = regexp.MustCompile(`(?:Chromium|Chrome)\D* (\d+[.\d]*)`)

// check returns an error if the browser does not run or is too old.
func (c *Chromium) check(ctx context.Context) error {
	says, err := run(ctx, "", c.Env, c.Path, "--version")
	if err != nil {
		return err
	}
	found := chromiumVersion.FindStringSubmatch(says)
	if found == nil {
		return fmt.Errorf("%q is no Chromium: it says %s", c.Path, last(says, 200))
	}
	if c.Version = found[1]; major(c.Version) < chromiumOldest {
		return fmt.Errorf("%q is version %s, older than %d", c.Path, c.Version, chromiumOldest)
	}
	return nil
}

func installChromium(ctx context.Context, log *slog.Logger) (*Chromium, error) {
	release, err := osRelease()
	if err != nil {
		return nil, fmt.Errorf("install chromium: %w", err)
	}
	dir, err := install(ctx, "chromium-"+release, log, fillChromium)
	if err != nil {
		return nil, err
	}
	c, err := unpackedChromium(dir)
	if err != nil {
		return nil, err
	}
	return c, c.check(ctx)
}

func fillChromium(ctx context.Context, dir string) error {
	if err := unpackPackages(ctx, dir, "chromium", "chromium-common"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, fontsFile), []byte(fonts), 0o600); err != nil {
		return err
	}
	c, err := unpackedChromium(dir)
	if err != nil {
		return err
	}
	return c.check(ctx)
}

// unpackedChromium returns the browser of the packages unpacked in dir. Path is the program itself, because Debian's
// start script expects it in the folder where it would be installed.
func unpackedChromium(dir string) (*Chromium, error) {
	libraries, err := unpackedLibraries(dir)
	if err != nil {
		return nil, err
	}
	env := []string{libraries}
	if !exists("/etc/fonts/fonts.conf") {
		env = append(env, "FONTCONFIG_FILE="+filepath.Join(dir, fontsFile))
	}
	return &Chromium{Source: dir, Path: filepath.Join(dir, "usr/lib/chromium/chromium"), Env: env}, nil
}

// fonts is the configuration of fontconfig, for a machine that has none.
const (
	fontsFile = "fonts.conf"
	fonts     = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir prefix="relative">usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`
)
