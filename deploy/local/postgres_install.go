package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// postgresOldest is the oldest version that the stores are written for.
const postgresOldest = 15

// debianPostgres matches the folders where Debian keeps programs that it does not put on the path.
const debianPostgres = "usr/lib/postgresql/*/bin"

// findPostgres finds the programs on this machine.
func findPostgres(ctx context.Context) (*postgresPrograms, error) {
	folders, err := filepath.Glob("/" + debianPostgres)
	if err != nil {
		return nil, err
	}
	slices.Sort(folders)
	slices.Reverse(folders) // newest first
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			folders = append([]string{filepath.Dir(path)}, folders...)
		}
	}
	errs := []error{errors.New("find postgres on this machine: not on the path, not in /" + debianPostgres)}
	for _, bin := range folders {
		programs := &postgresPrograms{bin: bin}
		if err := programs.check(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		return programs, nil
	}
	return nil, errors.Join(errs...)
}

// check returns an error if the programs do not run or are too old.
func (pp *postgresPrograms) check(ctx context.Context) error {
	if !exists(filepath.Join(pp.bin, "initdb")) {
		return fmt.Errorf("%q has no initdb", pp.bin)
	}
	says, err := output(pp.cmd(ctx, "postgres", "--version"))
	if err != nil {
		return err
	}
	_, version, _ := strings.Cut(says, "(PostgreSQL) ")
	if major(version) < postgresOldest {
		return fmt.Errorf("%q is %s, older than %d", pp.bin, strings.TrimSpace(says), postgresOldest)
	}
	return nil
}

// installPostgres unpacks Debian's packages in the user's cache. apt works on folders there, too: it needs no root, and
// nothing changes for the machine, where installing the package would start a server of its own.
func installPostgres(ctx context.Context, log *slog.Logger) (*postgresPrograms, error) {
	release, err := osRelease()
	if err != nil {
		return nil, fmt.Errorf("install postgres: %w", err)
	}
	dir, err := install(ctx, "postgres-"+release, log, fillPostgres)
	if err != nil {
		return nil, err
	}
	return unpackedPostgres(dir)
}

func fillPostgres(ctx context.Context, dir string) error {
	apt := filepath.Join(dir, "apt")
	for _, folder := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(apt, folder), 0o700); err != nil {
			return err
		}
	}
	options := []string{"-q", "-y", "-o", "Dir::State::lists=" + apt + "/lists", "-o", "Dir::Cache=" + apt + "/cache",
		"-o", "Debug::NoLocking=1", // the lock of the machine's own package state is root's
		"-o", "APT::Sandbox::User=", // as whom root would download: someone who cannot write here
		"-o", "Acquire::Retries=3"}
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if _, err := run(ctx, dir, env, "apt-get", append(options, "update")...); err != nil {
		return err
	}
	// What the machine has of the dependencies is not downloaded again.
	download := append(options, "--no-install-recommends", "--download-only", "install", "postgresql")
	if _, err := run(ctx, dir, env, "apt-get", download...); err != nil {
		return err
	}
	packages, err := filepath.Glob(apt + "/cache/archives/*.deb")
	if err != nil {
		return err
	}
	for _, p := range packages {
		if _, err := run(ctx, dir, nil, "dpkg-deb", "-x", p, dir); err != nil {
			return err
		}
	}
	programs, err := unpackedPostgres(dir)
	if err != nil {
		return err
	}
	return errors.Join(programs.check(ctx), os.RemoveAll(apt))
}

// unpackedPostgres returns the programs of packages that were unpacked in dir.
func unpackedPostgres(dir string) (*postgresPrograms, error) {
	bins, err := filepath.Glob(filepath.Join(dir, debianPostgres))
	if err != nil {
		return nil, err
	}
	if len(bins) == 0 {
		return nil, fmt.Errorf("the packages unpacked in %q hold no %s", dir, debianPostgres)
	}
	libraries, err := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-gnu*"))
	if err != nil {
		return nil, err
	}
	return &postgresPrograms{bin: bins[len(bins)-1],
		env: []string{"LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}}, nil
}

// osRelease returns the name and the version of this system, such as debian-12: what is unpacked on one system may not
// find its libraries on another.
func osRelease() (string, error) {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return "", err
	}
	defer f.Close()
	values := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		values[key] = strings.Trim(value, `"`)
	}
	return values["ID"] + "-" + values["VERSION_ID"], nil
}
