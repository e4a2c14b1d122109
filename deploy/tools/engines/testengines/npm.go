package testengines

import (
	"context"
	"os"
	"path/filepath"
)

// npmInstall installs a package, NAME@VERSION, in dir/node_modules by npm. It runs no script of the package.
func npmInstall(ctx context.Context, dir, pkg string) error {
	cache := filepath.Join(dir, "cache")
	_, err := run(ctx, dir, nil, "npm", "install", "--prefix", dir, "--cache", cache, "--no-save", "--no-package-lock",
		"--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error", pkg)
	if err != nil {
		return err
	}
	// The cache holds the downloaded archive, which is not needed any more.
	return os.RemoveAll(cache)
}
