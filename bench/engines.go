package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"linkstream/schema"
)

// What a service that is started here may be started on.
const (
	embeddedEngines = "embedded"
	realEngines     = "real"
)

// engines are what a started service keeps its data in, and what the loops beside it work on.
type engines interface {
	// openLinks opens the store of links.
	openLinks(ctx context.Context) (linkStore, error)
	// insertLinks inserts links without the store, which syncs each one to the disk, as it should: millions would take
	// hours.
	insertLinks(ctx context.Context, account int64, links linkSet) error
	// openClicks opens a store of clicks: the service's own if name is "", else a new one beside it.
	openClicks(ctx context.Context, name string) (clickStore, error)
	// rest waits until the service's own store of clicks does nothing more for clicks that were inserted all at once.
	rest(ctx context.Context) error
	// broker returns the address of a broker that has no topics of the service, and its process if that can be told.
	broker(ctx context.Context) (addr string, processes []process, err error)
	// edge returns an edge's program and the arguments that lead it to the links.
	edge(ctx context.Context) (program string, args []string, err error)
	// start starts the service on its data.
	start(ctx context.Context) (*runningService, error)
	// bareInserts returns a loop that inserts links, and nothing else.
	bareInserts(ctx context.Context) (*subject, error)
	// bareCounting returns the loops beside which clicks are counted: the first is what it is compared with.
	bareCounting(ctx context.Context, clicks int, fetch *subject) ([]*subject, error)
}

type linkStore interface {
	schema.Database
	io.Closer
}

type clickStore interface {
	schema.ClickStore
	io.Closer
}

// startEngines starts the engines that the configuration asks for.
func (b *bench) startEngines(ctx context.Context) (engines, error) {
	if b.cfg.Engines == realEngines {
		return b.startReal(ctx)
	}
	data := filepath.Join(b.dir, "data")
	return &embedded{bench: b, data: data}, os.Mkdir(data, 0o700)
}

// build builds one of the service's programs and returns its path.
func (b *bench) build(ctx context.Context, pkg string) (string, error) {
	program := filepath.Join(b.dir, "programs", filepath.Base(pkg))
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "linkstream/"+pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s, whose module must be around: %w\n%s", pkg, err, out)
	}
	return program, nil
}
