package testengines

import (
	"context"
	"log/slog"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Install is exported to tests because whether the engines use it depends on the machine.
var Install = install

// TempFolderIn is TempFolder in a folder that the test chooses.
var TempFolderIn = tempFolder

// StartScript starts a shell script in dir as an engine.
func StartScript(ctx context.Context, dir, script string, log *slog.Logger) (*Engine, error) {
	p := &process{log: log, output: filepath.Join(dir, "output"), quit: syscall.SIGTERM}
	p.prepare = func(context.Context) error { return nil }
	p.ping = p.prepare
	p.command = func() (*exec.Cmd, error) {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		return cmd, nil
	}
	return new(Engine).started(ctx, p, func() error { return nil }, log)
}
