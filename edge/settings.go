package main

import (
	"flag"
	"log/slog"

	"linkstream/edge/edgeservice"
	"linkstream/schema/service"
)

const usage = `Usage: edge [flags] [drain DIR | lanes [DIR] | health [ready]]

Edge reads links from Postgres and sends clicks to Kafka. While Postgres is down it serves the links in its cache; while
Kafka is down it stores clicks in the spool.

With "drain DIR" it only sends the clicks in DIR, the spool of an edge that is gone, to Kafka, gives back to Postgres
what was left of limits of links, and exits: with code 0 if all of it was sent.

With "lanes" it prints as JSON what the spool in DIR, or in -spool.dir, has recorded, for "ingest verify". The edge may
run.

` + service.HealthUsage

// settings adds to the edge's configuration what only this program lets its user choose.
type settings struct {
	edgeservice.Config
}

// RegisterFlags binds the settings to flags.
func (s *settings) RegisterFlags(fs *flag.FlagSet) {
	s.Config.RegisterFlags(fs)
	service.EdgeURLVar(fs, &s.Resolve.URL)
	fs.TextVar(&s.API, "edge.api", s.API,
		"base `URL` of an api, which edges ask about passwords of links (default the -api.url that an api has stored with "+
			"the links)")
	fs.StringVar(&s.Spool.Dir, "spool.dir", "./spool", "`directory` for clicks that wait for the broker")
}

// openPort listens for visitors, on the socket "edge" if the service manager has passed it. The settings get the socket
// "edge-tls".
func openPort(cfg *settings, log *slog.Logger) (*service.Standby, error) {
	sockets, err := service.InheritSockets("edge", "edge-tls")
	if err != nil {
		return nil, err
	}
	cfg.TLSListener = sockets["edge-tls"]
	return sockets.ListenStandby("edge", cfg.Listen, "text/plain; charset=utf-8", "The service is starting. Try again in "+
		"a few seconds.\n", log)
}
