package main

import (
	"flag"
	"io"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/schema/clickhouse"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
	"linkstream/schema/tracing"
)

const usage = `Usage: api [flags] [command]

Without a command, api serves the API and the dashboard. It reads links from Postgres and clicks from ClickHouse.

` + service.HealthUsage + "\n"

// startingBody answers requests until the service is ready.
const startingBody = `{"message":"The service is starting: try again in 1 second."}`

// settings holds the settings of all parts of the program.
type settings struct {
	api          apiservice.Config
	firstAccount admin.FirstAccount
	links        postgres.Config
	clicks       clickhouse.Config
	topics       stream.Config
	clickHooks   clickHookConfig
	logs         service.LogConfig
	ops          service.OpsConfig
	traces       tracing.Config
	admin        admin.Config
}

// parseSettings returns the settings and the operator's command, which is empty if the program has to serve.
func parseSettings(args []string, stderr io.Writer) (s settings, command []string, err error) {
	s = settings{
		api: apiservice.DefaultConfig(), links: postgres.DefaultConfig(),
		clicks: clickhouse.DefaultConfig(), topics: stream.DefaultConfig(),
		ops: service.OpsConfig{Listen: service.OpsListenAPI}, traces: tracing.DefaultConfig(),
	}
	s.api.EdgeURL = service.DefaultEdgeURL
	command, err = service.ParseArgs("api", usage+admin.Usage, args, stderr,
		apiSection{&s.api}, &s.firstAccount, &s.links, &s.clicks, &s.topics, &s.clickHooks, &s.logs, &s.ops, &s.traces,
		&s.admin)
	s.admin.EdgeURL = s.api.EdgeURL
	return s, command, err
}

// apiSection adds flags of the edge to the flags of the service: other programs set them for several services at once.
type apiSection struct{ *apiservice.Config }

func (s apiSection) RegisterFlags(fs *flag.FlagSet) {
	service.EdgeURLVar(fs, &s.EdgeURL)
	service.EdgeSiteVar(fs, &s.Site)
	s.Config.RegisterFlags(fs)
}
