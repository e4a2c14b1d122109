package testengines

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// unpackPackages has apt download packages of this system, together with what the machine lacks of their dependencies,
// and unpacks them in dir. apt works on folders there, too: it needs no root, and nothing changes for the machine.
func unpackPackages(ctx context.Context, dir string, packages ...string) error {
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

// libraryFolders are where Debian keeps libraries. PulseAudio's looks for a part of itself where it would be installed.
var libraryFolders = []string{"usr/lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/pulseaudio", "lib/*-linux-gnu*"}

// unpackedLibraries returns the variable by which programs find the libraries that were unpacked in dir.
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
