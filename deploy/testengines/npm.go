package testengines

import (
	"context"
	"os"
	"path/filepath"
)

// npmInstall has npm put a package, NAME@VERSION, into dir/node_modules. No script of the package runs.
func npmInstall(ctx context.Context, dir, pkg string) error {
	cache := filepath.Join(dir, "cache")
	_, err := run(ctx, dir, nil, "npm", "install", "--prefix", dir, "--cache", cache, "--no-save", "--no-package-lock",
		"--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error", pkg)
	if err != nil {
		return err
	}
	// What was downloaded is there packed as well, and npm would keep it.
	return os.RemoveAll(cache)
}
