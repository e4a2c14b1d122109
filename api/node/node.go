// Package node is one api process: the public API, and what it needs to run.
package node

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/access"
	"linkstream/api/rest"
	"linkstream/api/shorten"
	"linkstream/schema"
	"linkstream/schema/ops"
)

// stopGrace bounds how long requests under way may take once the node is to stop.
const stopGrace = 10 * time.Second

// Config is the configuration of an api process.
type Config struct {
	EdgeURL   string // the public base of short links; set by the program from -edge.url
	Listen    string // address that the API is served on
	Blocklist string // paths of blocklist files, separated by commas
}

// DefaultConfig returns a configuration that works once EdgeURL is set.
func DefaultConfig() Config { return Config{Listen: "127.0.0.1:8081"} }

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Listen, "api.listen", c.Listen, "`address` that the API is served on")
	fs.StringVar(&c.Blocklist, "api.blocklist", c.Blocklist,
		"`files` of unsafe hosts in the format of /etc/hosts, separated by commas; read again when they change")
}

// Validate returns every invalid setting but the URL and the files, which New reads.
func (c *Config) Validate() error {
	if err := ops.CheckAddr(c.Listen); err != nil {
		return fmt.Errorf("-api.listen: %w", err)
	}
	return nil
}

func (c *Config) blocklistFiles() []string {
	return strings.FieldsFunc(c.Blocklist, func(r rune) bool { return r == ',' })
}

// Links is what an api asks its link store.
type Links interface {
	schema.LinkStore
	schema.DomainStore
	schema.TokenStore
	schema.RateStore
}

// Node is an api process.
type Node struct {
	listener  net.Listener
	server    *fasthttp.Server
	tokens    *access.Authenticator
	blocklist *shorten.Blocklist
	links     Links
	clicks    schema.ClickStore
}

// New reads the blocklist, listens, and returns a node that has yet to Run.
func New(cfg Config, links Links, clicks schema.ClickStore, log *slog.Logger) (*Node, error) {
	blocklist, err := shorten.OpenBlocklist(cfg.blocklistFiles(), log)
	if err != nil {
		return nil, fmt.Errorf("-api.blocklist: %w", err)
	}
	shortener, err := shorten.New(cfg.EdgeURL, links, links, blocklist)
	if err != nil {
		return nil, err
	}
	tokens, err := access.NewAuthenticator(links)
	if err != nil {
		return nil, err
	}
	listener, err := ops.Listen(cfg.Listen)
	if err != nil {
		tokens.Close()
		return nil, err
	}
	set := metrics.NewSet()
	api := rest.New(tokens, access.NewLimiter(links), shortener, links, clicks, set, log)
	n := &Node{listener: listener, tokens: tokens, blocklist: blocklist, links: links, clicks: clicks}
	n.server = newServer(api, &ops.Endpoints{Ready: n.Ready, Metrics: set}, log)
	return n, nil
}

// Addr returns the address the node listens on.
func (n *Node) Addr() string { return n.listener.Addr().String() }

// Ready returns nil if both stores answer.
func (n *Node) Ready(ctx context.Context) error {
	if _, err := n.links.Link(ctx, 0, ""); err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
		return fmt.Errorf("link store: %w", err)
	}
	if _, err := n.clicks.ClickCounts(ctx, []int64{0}); err != nil {
		return fmt.Errorf("click store: %w", err)
	}
	return nil
}

// Run serves until ctx is done and the requests under way are answered.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { n.blocklist.Run(ctx) })
	err := ops.Serve(ctx, n.server, n.listener, stopGrace)
	cancel()
	following.Wait()
	n.tokens.Close()
	return err
}
