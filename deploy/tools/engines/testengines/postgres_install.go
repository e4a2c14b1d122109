package testengines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// postgresOldest is the oldest version that the stores support.
const postgresOldest = 15

// debianPostgres matches the folders of Debian's programs, which are not on the path.
const debianPostgres = "usr/lib/postgresql/*/bin"

// findPostgres returns the newest programs of this machine that work; one on the path comes first.
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

// installPostgres unpacks Debian's packages. To install them would start a server.
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
	if err := unpackPackages(ctx, dir, "postgresql"); err != nil {
		return err
	}
	programs, err := unpackedPostgres(dir)
	if err != nil {
		return err
	}
	return programs.check(ctx)
}

// unpackedPostgres returns the programs of the packages unpacked in dir.
func unpackedPostgres(dir string) (*postgresPrograms, error) {
	bins, err := filepath.Glob(filepath.Join(dir, debianPostgres))
	if err != nil {
		return nil, err
	}
	if len(bins) == 0 {
		return nil, fmt.Errorf("the packages unpacked in %q hold no %s", dir, debianPostgres)
	}
	libraries, err := unpackedLibraries(dir)
	return &postgresPrograms{bin: bins[len(bins)-1], env: []string{libraries}}, err
}
