// Release builds what a release consists of: archives of the programs for each platform, Debian packages, a list of
// what is in them, checksums, and a signature. The same source, version and Go give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"linkstream/schema/service"
)

const usage = `Usage: release [flags] VERSION

It builds release VERSION, such as 1.2.3, from the source in the current folder, which must be a clean checkout:

  linkstream_VERSION_OS_ARCH.tar.gz     the programs for linux/amd64, linux/arm64 and darwin/arm64
  linkstream_VERSION_ARCH.deb           the Debian package for amd64 and arm64
  linkstream-VERSION.tgz                the client of the API for TypeScript, as npm installs it
  linkstream-VERSION-py3-none-any.whl   the same for Python, as pip installs it
  linkstream_VERSION.cdx.json           the modules in the programs, as a CycloneDX document
  SHA256SUMS, SHA256SUMS.sig            checksums of these files, and their signature with -key

It needs go, git and dpkg-deb, and ssh-keygen for the signature.
`

func main() { service.Main("release", run) }

// settings are the flags.
type settings struct {
	out       string
	key       string
	platforms []string
}

// RegisterFlags binds the settings to flags.
func (s *settings) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&s.out, "release.out", "build/release", "`folder` of the files, which is replaced")
	fs.StringVar(&s.key, "release.key", "", "`file` of the private key, as ssh-keygen makes it, that signs the checksums "+
		"(default: no signature)")
	fs.Func("release.platforms", "build only for these `platforms`, as in linux/amd64,linux/arm64 (default: all)",
		func(list string) error {
			s.platforms = strings.Split(list, ",")
			return nil
		})
}

// Validate returns an error if there is no folder, or a platform is unknown.
func (s *settings) Validate() error {
	if s.out == "" {
		return errors.New("-release.out: is empty")
	}
	for _, p := range s.platforms {
		if !slices.Contains(platforms, p) {
			return fmt.Errorf("-release.platforms: %q is none of %q", p, platforms)
		}
	}
	return nil
}

var versions = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9a-z.]+)?$`)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var cfg settings
	names, err := service.ParseArgs("release", usage, args, stderr, &cfg)
	if err != nil {
		return err
	}
	if len(names) != 1 || !versions.MatchString(names[0]) {
		return errors.New("it takes one version, such as 1.2.3, see -h")
	}
	r := release{version: names[0], out: cfg.out, platforms: platforms, stderr: stderr}
	if len(cfg.platforms) > 0 {
		r.platforms = cfg.platforms
	}
	if r.time, err = commitTime(ctx); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "linkstream-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{r.buildArchives, r.buildPackages, r.buildClients, r.writeBOM,
		r.writeSums} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if cfg.key == "" {
		_, err = fmt.Fprintf(stdout, "release %s is in %s, without a signature\n", r.version, r.out)
		return err
	}
	if err := r.sign(ctx, cfg.key); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "release %s is in %s, signed\n", r.version, r.out)
	return err
}
