package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	sumsName           = "SHA256SUMS"
	signatureNamespace = "linkstream-release"
)

// platforms are those that programs are built for.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/arm64"}

// programs are those of an archive.
var programs = []string{"./edge", "./ingest", "./api", "./deploy/standalone", "./deploy/migrate-to",
	"./api/cli/linkstream"}

// documents are the files of an archive beside the programs.
var documents = []string{"LICENSE", "CHANGELOG.md", "deploy/README.md", "deploy/manual/install.md",
	"deploy/manual/operate.md", "deploy/manual/watch.md", "deploy/manual/backup.md", "deploy/manual/scale.md",
	"deploy/manual/reference.md"}

// buildArchives builds the programs for each platform.
func (r *release) buildArchives(ctx context.Context) error {
	for _, p := range r.platforms {
		system, arch, _ := strings.Cut(p, "/")
		name := fmt.Sprintf("linkstream_%s_%s_%s", r.version, system, arch)
		bin := r.programsOf(system, arch)
		args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", bin + "/", "-ldflags",
			strings.ReplaceAll("-s -w -X linkstream/schema/service.version=V -X linkstream/api/cli.version=V", "V", r.version)},
			programs...)
		env := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOOS=" + system, "GOARCH=" + arch}
		if err := r.command(ctx, env, "go", args...); err != nil {
			return err
		}
		if err := r.readModules(bin, system+"_"+arch); err != nil {
			return err
		}
		if err := r.archive(bin, name); err != nil {
			return fmt.Errorf("archive %s: %w", name, err)
		}
	}
	return nil
}

// programsOf returns the folder of the programs for a platform.
func (r *release) programsOf(system, arch string) string {
	return filepath.Join(r.dir, system+"_"+arch)
}

// member is a file of an archive.
type member struct {
	name, from string
	mode       int64
}

// archive writes a tar.gz of the programs in a folder, and of the documents, below a folder with the archive's name.
func (r *release) archive(bin, name string) error {
	var members []member
	for _, p := range programs {
		members = append(members, member{path.Base(p), filepath.Join(bin, path.Base(p)), 0o755})
	}
	for _, d := range documents {
		members = append(members, member{strings.TrimPrefix(d, "deploy/"), d, 0o644})
	}
	return r.pack(name+".tar.gz", name, members)
}

// pack writes a tar.gz of files, which are below a folder in it.
func (r *release) pack(name, folder string, members []member) (err error) {
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	out, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for _, m := range members {
		content, err := os.ReadFile(m.from)
		if err != nil {
			return err
		}
		head := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, m.name), Mode: m.mode, Size: int64(len(content)),
			ModTime: r.time,
			Uname:   "root", Gname: "root", Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

// writeSums writes the checksums of all files as sha256sum does.
func (r *release) writeSums(context.Context) error {
	entries, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		file, err := os.Open(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		hash := sha256.New()
		_, err = io.Copy(hash, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(hash.Sum(nil)), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, sumsName), []byte(sums.String()), 0o644)
}
