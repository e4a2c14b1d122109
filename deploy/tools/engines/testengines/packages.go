package testengines

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// The functions below install packages that a manifest lists, with their versions, by the machine's own package client.
// Each content of a manifest has a folder of its own in the user's cache.

// NPMPackages installs the packages of dir/package-lock.json and returns the folder node_modules.
func NPMPackages(ctx context.Context, log *slog.Logger, dir string) (modules string, err error) {
	manifests := []string{filepath.Join(dir, "package.json"), filepath.Join(dir, "package-lock.json")}
	dir, err = installManifests(ctx, "npm", log, manifests, func(ctx context.Context, dir string) error {
		cache := filepath.Join(dir, "cache")
		if _, err := run(ctx, dir, nil, "npm", "ci", "--cache", cache, "--ignore-scripts", "--no-audit", "--no-fund",
			"--loglevel", "error"); err != nil {
			return err
		}
		return os.RemoveAll(cache)
	})
	return filepath.Join(dir, "node_modules"), err
}

// PythonPackages installs the packages of a requirements file and returns an interpreter that finds them. Their
// programs are run as modules, by python -m.
func PythonPackages(ctx context.Context, log *slog.Logger, requirements string) (python string, err error) {
	dir, err := installManifests(ctx, "python", log, []string{requirements}, func(ctx context.Context, dir string) error {
		if _, err := run(ctx, dir, nil, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		_, err := run(ctx, dir, nil, filepath.Join(dir, "bin/python"), "-m", "pip", "install", "--quiet", "--no-cache-dir",
			"--disable-pip-version-check", "--no-deps", "--requirement", filepath.Base(requirements))
		return err
	})
	return filepath.Join(dir, "bin/python"), err
}

// MavenLibraries downloads the dependencies of a POM and returns the folder of the jars.
func MavenLibraries(ctx context.Context, log *slog.Logger, pom string) (libs string, err error) {
	dir, err := installManifests(ctx, "maven", log, []string{pom}, func(ctx context.Context, dir string) error {
		return copyDependencies(ctx, dir)
	})
	return filepath.Join(dir, "libs"), err
}

// copyDependencies downloads the dependencies of dir/pom.xml to dir/libs by Maven.
func copyDependencies(ctx context.Context, dir string) error {
	repository := filepath.Join(dir, "repository")
	_, err := run(ctx, dir, nil, "mvn", "--batch-mode", "--quiet", "-Dstyle.color=never", "-Dmaven.repo.local="+repository,
		"-Dmaven.wagon.http.retryHandler.count=3", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(dir, "libs"))
	if err != nil {
		return err
	}
	return os.RemoveAll(repository)
}

// installManifests installs by fill, in a folder that has copies of the manifests.
func installManifests(
	ctx context.Context, client string, log *slog.Logger, manifests []string, fill filler,
) (dir string, err error) {
	digest := sha256.New()
	contents := make([][]byte, len(manifests))
	for i, manifest := range manifests {
		if contents[i], err = os.ReadFile(manifest); err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%d %s", len(contents[i]), contents[i])
	}
	name := client + "-" + hex.EncodeToString(digest.Sum(nil)[:8])
	return install(ctx, name, log, func(ctx context.Context, dir string) error {
		for i, manifest := range manifests {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(manifest)), contents[i], 0o600); err != nil {
				return err
			}
		}
		return fill(ctx, dir)
	})
}

// DebianPackages unpacks packages of this system by apt, with those of their dependencies that the machine does not
// have, and returns their folder. Its files can be added to the root of a machine whose /bin, /lib and /sbin are links
// to those in /usr.
func DebianPackages(ctx context.Context, log *slog.Logger, packages ...string) (dir string, err error) {
	release, err := osRelease()
	if err != nil {
		return "", err
	}
	name := "apt-" + release + "-" + strings.Join(packages, "-")
	return install(ctx, name, log, func(ctx context.Context, dir string) error {
		if err := unpackPackages(ctx, dir, packages...); err != nil {
			return err
		}
		for _, folder := range []string{"bin", "lib", "lib32", "lib64", "sbin"} {
			from := filepath.Join(dir, folder)
			if !exists(from) {
				continue
			}
			to := filepath.Join(dir, "usr", folder)
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			if _, err := run(ctx, dir, nil, "cp", "-a", from+"/.", to); err != nil {
				return err
			}
			if err := os.RemoveAll(from); err != nil {
				return err
			}
		}
		return nil
	})
}

// GoPrograms builds programs, each PACKAGE@VERSION, outside of this module and returns their folder.
func GoPrograms(ctx context.Context, log *slog.Logger, packages ...string) (bin string, err error) {
	digest := sha256.Sum256([]byte(strings.Join(packages, " ")))
	dir, err := install(ctx, "go-"+hex.EncodeToString(digest[:8]), log, func(ctx context.Context, dir string) error {
		env := []string{"GOBIN=" + filepath.Join(dir, "bin"), "GOFLAGS=", "CGO_ENABLED=0"}
		for _, pkg := range packages {
			if _, err := run(ctx, dir, env, "go", "install", pkg); err != nil {
				return err
			}
		}
		return nil
	})
	return filepath.Join(dir, "bin"), err
}
