package main

import (
	"io"

	"linkstream/api/admin"
	"linkstream/api/node"
	"linkstream/deploy/config"
	"linkstream/deploy/program"
	"linkstream/schema/clickhouse"
	"linkstream/schema/stream"
)

const usage = `Usage: api [flags] [command]

Without a command it serves the API and the dashboard, from a Postgres database and from ClickHouse.

`

// starting is what clients are told until the service can answer them.
const starting = `{"message":"The service is starting: try again in 1 second."}`

// settings are all of the program.
type settings struct {
	node   node.Config
	public config.Public
	first  program.Bootstrap
	links  config.Postgres
	clicks clickhouse.Config
	topics stream.Config
	logs   config.Log
	admin  admin.Config
}

// parse reads the settings and the admin command, if there is one.
func parse(args []string, stderr io.Writer) (s settings, command []string, err error) {
	s = settings{node: node.DefaultConfig(), public: config.Public{URL: "http://127.0.0.1:8080"},
		links: config.DefaultPostgres(), clicks: clickhouse.Config{DSN: clickhouse.DefaultDSN}, topics: stream.DefaultConfig()}
	command, err = program.Parse("api", usage+admin.Usage, args, stderr,
		&s.node, &s.public, &s.first, &s.links, &s.clicks, &s.topics, &s.logs, &s.admin)
	s.node.EdgeURL, s.admin.EdgeURL = s.public.URL, s.public.URL
	return s, command, err
}
