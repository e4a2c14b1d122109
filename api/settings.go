package main

import (
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
	public       service.PublicURL
	firstAccount admin.FirstAccount
	links        postgres.Config
	clicks       clickhouse.Config
	topics       stream.Config
	logs         service.LogConfig
	admin        admin.Config
}

// parse reads the settings and the admin command, if there is one.
func parse(args []string, stderr io.Writer) (s settings, command []string, err error) {
	s = settings{node: apiservice.DefaultConfig(), public: service.PublicURL{URL: "http://127.0.0.1:8080"},
		links: postgres.DefaultConfig(), clicks: clickhouse.Config{DSN: clickhouse.DefaultDSN}, topics: stream.DefaultConfig()}
	command, err = service.ParseArgs("api", usage+admin.Usage, args, stderr,
		&s.node, &s.public, &s.firstAccount, &s.links, &s.clicks, &s.topics, &s.logs, &s.admin)
	s.node.EdgeURL, s.admin.EdgeURL = s.public.URL, s.public.URL
	return s, command, err
}
