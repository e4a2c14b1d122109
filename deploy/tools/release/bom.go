package main

import (
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// module is a Go module in the programs.
type module struct {
	path, version string
	sum           string   // its checksum in go.sum
	programs      []string // that have it, with their platform
}

// readModules notes the modules that the programs in a folder have, as the linker has recorded them.
func (r *release) readModules(bin, platform string) error {
	if r.bom == nil {
		r.bom = map[string]module{}
	}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(bin, path.Base(p)))
		if err != nil {
			return err
		}
		if info.GoVersion != runtime.Version() {
			return fmt.Errorf("%s is built by %s, and this program by %s", p, info.GoVersion, runtime.Version())
		}
		for _, d := range info.Deps {
			if d.Replace != nil {
				d = d.Replace
			}
			m := r.bom[d.Path]
			m.path, m.version, m.sum = d.Path, d.Version, d.Sum
			m.programs = append(m.programs, path.Base(p)+"_"+platform)
			r.bom[d.Path] = m
		}
	}
	return nil
}

// writeBOM writes the software bill of materials. It has no serial number, which would be another one each time.
func (r *release) writeBOM(context.Context) (err error) {
	bom := cdx.NewBOM()
	bom.SerialNumber = ""
	self := "pkg:generic/linkstream@" + r.version
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &cdx.Component{
		BOMRef: self, Type: cdx.ComponentTypeApplication, Name: "linkstream", Version: r.version, PackageURL: self,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}}
	goVersion := strings.TrimPrefix(runtime.Version(), "go")
	standard := cdx.Component{BOMRef: "pkg:golang/std@" + goVersion, Type: cdx.ComponentTypeLibrary, Name: "std",
		Version:    goVersion,
		PackageURL: "pkg:golang/std@" + goVersion}
	components, uses := []cdx.Component{standard}, []string{standard.BOMRef}
	for _, name := range slices.Sorted(maps.Keys(r.bom)) {
		c, err := r.bom[name].component()
		if err != nil {
			return err
		}
		components, uses = append(components, c), append(uses, c.BOMRef)
	}
	bom.Components, bom.Dependencies = &components, &[]cdx.Dependency{{Ref: self, Dependencies: &uses}}
	out, err := os.Create(filepath.Join(r.out, fmt.Sprintf("linkstream_%s.cdx.json", r.version)))
	if err != nil {
		return err
	}
	encoder := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true)
	return errors.Join(encoder.EncodeVersion(bom, cdx.SpecVersion1_6), out.Close())
}

// component describes the module. The programs that have it are in a property.
func (m module) component() (cdx.Component, error) {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.sum, "h1:"))
	if err != nil || !strings.HasPrefix(m.sum, "h1:") {
		return cdx.Component{}, fmt.Errorf("checksum %q of %s: %w", m.sum, m.path, err)
	}
	url := "pkg:golang/" + m.path + "@" + m.version
	return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version, PackageURL: url,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
		Properties: &[]cdx.Property{{Name: "linkstream:programs", Value: strings.Join(m.programs, " ")}},
	}, nil
}
