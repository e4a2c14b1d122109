package main

import (
	"flag"
	"io"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/schema/clickhouse"
	"linkstream/schema/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const usage = `Usage: api [flags] [command]

Without a command it serves the API and the dashboard, from a Postgres database and from ClickHouse.

`

// starting is what clients are told until the service can answer them.
const starting = `{"message":"The service is starting: try again in 1 second."}`

// settings are all of the program.
type settings struct {
	node         apiservice.Config
	firstAccount admin.FirstAccount
	links        postgres.Config
	clicks       clickhouse.Config
	topics       stream.Config
	logs         service.LogConfig
	admin        admin.Config
}

// RegisterFlags binds the settings of the service itself to flags.
func (s *settings) RegisterFlags(fs *flag.FlagSet) {
	service.EdgeURLVar(fs, &s.node.EdgeURL)
	s.node.RegisterFlags(fs)
}

// Validate returns every invalid setting of the service itself.
func (s *settings) Validate() error { return s.node.Validate() }

// parse reads the settings and the admin command, if there is one.
func parse(args []string, stderr io.Writer) (s settings, command []string, err error) {
	s = settings{node: apiservice.DefaultConfig(), links: postgres.DefaultConfig(),
		clicks: clickhouse.Config{DSN: clickhouse.DefaultDSN}, topics: stream.DefaultConfig()}
	s.node.EdgeURL = service.DefaultEdgeURL
	command, err = service.ParseArgs("api", usage+admin.Usage, args, stderr,
		&s, &s.firstAccount, &s.links, &s.clicks, &s.topics, &s.logs, &s.admin)
	s.admin.EdgeURL = s.node.EdgeURL
	return s, command, err
}
