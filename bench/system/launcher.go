package system

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"linkstream/bench/proc"
	"linkstream/bench/workload"
)

// Launcher starts the system under test and its engines, or finds a running system.
type Launcher struct {
	cfg      Config
	group    *proc.Group
	progress func(format string, args ...any)
	cert     *Certificate // of a started edge that serves HTTPS; nil: it does not
}

// NewLauncher returns a launcher whose processes and files belong to group.
func NewLauncher(cfg Config, group *proc.Group, progress func(format string, args ...any)) *Launcher {
	return &Launcher{cfg: cfg, group: group, progress: progress}
}

// ServeTLS makes the edge of a system that has yet to start serve HTTPS as well.
func (l *Launcher) ServeTLS(cert Certificate) { l.cert = &cert }

// secureFlags returns the flags of HTTPS for the edge of a started system.
func (l *Launcher) secureFlags(s *Service) []string {
	if l.cert == nil {
		return nil
	}
	return l.cert.Flags(s.EdgeTLS)
}

// StartEngines starts the engines that the configuration names.
func (l *Launcher) StartEngines(ctx context.Context) (Engines, error) {
	if l.cfg.Engines == Real {
		return l.startReal(ctx)
	}
	data := l.group.Path("data")
	return &embedded{launcher: l, data: data}, os.Mkdir(data, 0o700)
}

// Open starts the system or finds it running, and creates the links. fill, if not nil, fills the stores of a system
// that has yet to start.
func (l *Launcher) Open(
	ctx context.Context, links workload.Links, fill func(ctx context.Context, on Engines) error,
) (*Service, error) {
	if !l.cfg.Start {
		return l.find(ctx, links)
	}
	on, err := l.StartEngines(ctx)
	if err != nil {
		return nil, err
	}
	l.progress("creating %d links", links.Count)
	secrets, err := CreateLinks(ctx, on, links)
	if err != nil {
		return nil, err
	}
	if fill != nil {
		if err := fill(ctx, on); err != nil {
			return nil, err
		}
	}
	l.progress("starting the service")
	s, err := on.start(ctx)
	if err != nil {
		return nil, err
	}
	s.API.tokens, s.Engines = &tokens{secrets: secrets}, on
	for _, child := range s.children {
		l.group.OnClose(child.Stop) // a service that loses clicks while it stops reports it
	}
	return s, s.await(ctx)
}

// program returns the path of one of the system's programs.
func (l *Launcher) program(ctx context.Context, pkg string) (string, error) {
	if l.cfg.Programs != "" {
		return filepath.Abs(filepath.Join(l.cfg.Programs, filepath.Base(pkg)))
	}
	program := l.group.Path("programs", filepath.Base(pkg))
	if _, err := os.Stat(program); err == nil {
		return program, nil // built earlier in this run
	}
	l.progress("building %s", pkg)
	return program, goBuild(ctx, filepath.Dir(program), pkg)
}

// Build builds all programs of a started system into cfg.Programs.
func Build(ctx context.Context, cfg Config) error {
	if cfg.Engines == Real {
		return goBuild(ctx, cfg.Programs, "edge", "api", "ingest")
	}
	return goBuild(ctx, cfg.Programs, "deploy/standalone")
}

// goBuild builds packages of this module into a directory.
func goBuild(ctx context.Context, dir string, packages ...string) error {
	args := []string{"build", "-o", dir + "/"}
	for _, p := range packages {
		args = append(args, "linkstream/"+p)
	}
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %q (run bench inside the module, or name -programs): %w\n%s", packages, err, out)
	}
	return nil
}
