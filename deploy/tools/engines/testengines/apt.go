package testengines

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// unpackPackages downloads packages of this system by apt, with those of their dependencies that the machine does not
// have, and unpacks them in dir. apt also keeps its state there, so it needs no root and does not change the machine.
func unpackPackages(ctx context.Context, dir string, packages ...string) error {
	apt := filepath.Join(dir, "apt")
	for _, folder := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(apt, folder), 0o700); err != nil {
			return err
		}
	}
	options := []string{"-q", "-y", "-o", "Dir::State::lists=" + apt + "/lists", "-o", "Dir::Cache=" + apt + "/cache",
		"-o", "Debug::NoLocking=1", // only root can lock the machine's package state
		"-o", "APT::Sandbox::User=", // root would download as a user who cannot write here
		"-o", "Acquire::Retries=3"}
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if _, err := run(ctx, dir, env, "apt-get", append(options, "update")...); err != nil {
		return err
	}
	// Dependencies that the machine has are not downloaded.
	download := append(options, "--no-install-recommends", "--download-only", "--reinstall", "install")
	if _, err := run(ctx, dir, env, "apt-get", append(download, packages...)...); err != nil {
		return err
	}
	files, err := filepath.Glob(apt + "/cache/archives/*.deb")
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := run(ctx, dir, nil, "dpkg-deb", "-x", file, dir); err != nil {
			return err
		}
	}
	return os.RemoveAll(apt)
}

// libraryFolders are Debian's folders of libraries. PulseAudio keeps a part of its library in one of its own.
var libraryFolders = []string{"usr/lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/pulseaudio", "lib/*-linux-gnu*"}

// unpackedLibraries returns the environment variable by which programs find the libraries unpacked in dir.
func unpackedLibraries(dir string) (string, error) {
	var found []string
	for _, pattern := range libraryFolders {
		folders, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", err
		}
		found = append(found, folders...)
	}
	return "LD_LIBRARY_PATH=" + strings.Join(found, ":"), nil
}

// osRelease returns the name and the version of this system, such as debian-12. Packages unpacked on one system may
// miss libraries on another.
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
