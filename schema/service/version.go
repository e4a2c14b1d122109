package service

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
)

// version is set by builds that know it better than the go command, with -ldflags "-X
// linkstream/schema/service.version=…".
var version string

// Version returns the version of the program: the version that was set by its build, else the go command's, derived
// from the repository, else "unknown".
func Version() string {
	if version != "" {
		return version
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	return "unknown"
}

// asksVersion reports whether -version is among the arguments before "--". Unlike other flags it is not read from the
// environment, where LINKSTREAM_VERSION is likely to be somebody else's, and other settings need not be valid.
func asksVersion(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "-version") || slices.Contains(args, "--version")
}

func printVersion(name string, out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s %s %s %s/%s\n", name, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionFlag adds -version to the output of -h. Main handles it.
func versionFlag(fs *flag.FlagSet) {
	fs.BoolFunc("version", "print the version and exit", func(string) error { return nil })
}
