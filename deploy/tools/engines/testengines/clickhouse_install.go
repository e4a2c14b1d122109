package testengines

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
)

const (
	clickhouseOldest = 25_08    // year and month of the oldest version that clickhouse-go supports
	chdbVersion      = "26.5.3" // the version to install
	chdbPackage      = "@chdb/lib-linux-x64-gnu"
	chserverPackage  = "linkstream/deploy/tools/engines/chserver"
)

// installChdb installs the engine's library in the user's cache by npm and returns its path.
func installChdb(ctx context.Context, log *slog.Logger) (library string, err error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("install %s: there is none for %s/%s", chdbPackage, runtime.GOOS, runtime.GOARCH)
	}
	dir, err := install(ctx, "chdb-"+chdbVersion, log, fillChdb)
	return chdbLibrary(dir), err
}

func fillChdb(ctx context.Context, dir string) error {
	if err := npmInstall(ctx, dir, chdbPackage+"@"+chdbVersion); err != nil {
		return err
	}
	if !exists(chdbLibrary(dir)) {
		return fmt.Errorf("%s holds no library", chdbPackage)
	}
	return nil
}

func chdbLibrary(dir string) string {
	return filepath.Join(dir, "node_modules", filepath.FromSlash(chdbPackage), "libchdb.so")
}
