package system

import (
	"context"
	"io"

	"linkstream/bench/proc"
	"linkstream/bench/workload"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// Engines are the stores and the broker of a started system. Contenders work on the same engines.
type Engines interface {
	// Versions returns the names and versions of engines in processes of their own.
	Versions() []string
	// OpenLinks opens the store of links. The caller closes it.
	OpenLinks(ctx context.Context) (LinkStore, error)
	// InsertLinks inserts links without the store, which syncs each link to the disk: millions would take hours.
	InsertLinks(ctx context.Context, account int64, links workload.Links) error
	// OpenClicks opens a store of clicks: the system's own if name is empty, otherwise a new and separate one. The caller
	// closes it.
	OpenClicks(ctx context.Context, name string) (ClickStore, error)
	// AwaitMerges waits until the system's store of clicks has finished its background work.
	AwaitMerges(ctx context.Context) error
	// Broker returns the broker, or nil if the system has none.
	Broker() *Broker
	// EdgeCommand returns the program of an edge and the arguments that lead it to the links.
	EdgeCommand(ctx context.Context) (program string, args []string, err error)
	// BareLinkInsert returns an insert of one link without any of the system's code.
	BareLinkInsert(ctx context.Context) (LinkCall, error)
	// BareLinkLookup returns a look-up of any of the links, without any of the system's code.
	BareLinkLookup(ctx context.Context, links workload.Links) (LinkCall, error)
	// ClickProcesses returns the processes of the store of clicks. It returns nil if they are unknown, or if the store is
	// part of the programs that use it.
	ClickProcesses() []proc.Process
	// BareClickInsert returns an insert of the first rows of a batch without any of the system's code, as the
	// documentation of the engine's client describes it. Only systems with a broker have it.
	BareClickInsert(ctx context.Context) (ClickInsert, error)

	// start starts the system on its data.
	start(ctx context.Context) (*Service, error)
}

// LinkStore is an open store of links.
type LinkStore interface {
	schema.Database
	io.Closer
}

// ClickStore is an open store of clicks.
type ClickStore interface {
	schema.ClickStore
	io.Closer
}

// LinkCall is an insert or a look-up of one link.
type LinkCall struct {
	Name       string
	Goroutines int                                      // that call at the same time
	Call       func(ctx context.Context, n int64) error // n differs from call to call
}

// ClickInsert inserts the first rows of a batch.
type ClickInsert func(ctx context.Context, batch *schema.ClickBatch, rows int) error

// Broker is a broker for contenders.
type Broker struct {
	Addrs  string
	prefix string // of the names of topics and groups, different in each run
}

// Topics returns a set of topics. Contenders with different names do not share topics.
func (b Broker) Topics(name string) stream.Config {
	cfg, prefix := stream.DefaultConfig(), b.prefix+name+"."
	cfg.Brokers = b.Addrs
	cfg.Clicks, cfg.Dead, cfg.Changes, cfg.Group = prefix+cfg.Clicks, prefix+cfg.Dead, prefix+cfg.Changes, prefix+cfg.Group
	return cfg
}

// TopicFlags returns the flags by which every program finds its topics.
func TopicFlags(cfg stream.Config) []string {
	return []string{"-kafka.brokers", cfg.Brokers, "-kafka.clicks-topic", cfg.Clicks, "-kafka.dead-topic", cfg.Dead,
		"-kafka.changes-topic", cfg.Changes}
}
