package testengines

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
)

const (
	axePackage = "axe-core"
	axeVersion = "4.14.1" // of the package that is installed
)

// AxeCore returns the path of axe-core's script, which finds accessibility faults of a page. npm installs it in the
// user's cache.
func AxeCore(ctx context.Context, log *slog.Logger) (path string, err error) {
	dir, err := install(ctx, axePackage+"-"+axeVersion, log, func(ctx context.Context, dir string) error {
		if err := npmInstall(ctx, dir, axePackage+"@"+axeVersion); err != nil {
			return err
		}
		if !exists(axeScript(dir)) {
			return fmt.Errorf("%s holds no script", axePackage)
		}
		return nil
	})
	return axeScript(dir), err
}

func axeScript(dir string) string {
	return filepath.Join(dir, "node_modules", axePackage, "axe.min.js")
}
