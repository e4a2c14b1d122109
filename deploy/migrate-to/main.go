// Migrate-to moves the data of a standalone service to Postgres, ClickHouse and Kafka, while visitors are redirected.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"time"

	"linkstream/deploy/standalone/embedded"
	"linkstream/schema/clickhouse"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const usage = `Usage: migrate-to [flags]

Migrate-to moves the data of a standalone service in -data to Postgres, ClickHouse and Kafka. No click is lost or
counted twice, and visitors are redirected all the time. It

  1. ends the counting in the old data and copies what was counted to ClickHouse,
  2. ends all changes of links and accounts there, for good, and copies them to Postgres,
  3. waits until the service is stopped, and sends the clicks that it has recorded and not counted to Kafka.

Start edge, ingest and api on the new engines, and send clients and visitors to them as soon as it says that the links
are copied. Then stop the old service: until then the clicks of its visitors wait in its spool. migrate-to sends them
and ends with code 0. Give the new edge a spool of its own.

It may be stopped or killed at any time. Start it again with the same flags until it ends with code 0.
`

func main() { service.Main("migrate-to", run) }

// settings are the flags of this program alone.
type settings struct{ data string }

// RegisterFlags binds the settings to flags.
func (s *settings) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&s.data, "data", "./data", "`directory` of all data of the standalone service")
}

// Validate returns an error if there is no directory.
func (s *settings) Validate() error {
	if s.data == "" {
		return errors.New("-data: is empty")
	}
	return nil
}

// openTimeout bounds how long an engine may take to answer at the start, migrations included.
const openTimeout = time.Minute

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, logs := settings{}, service.LogConfig{}
	database, counts, topics := postgres.DefaultConfig(), clickhouse.DefaultConfig(), stream.DefaultConfig()
	if command, err := service.ParseArgs("migrate-to", usage, args, stderr, &cfg, &database, &counts, &topics,
		&logs); err != nil {
		return err
	} else if len(command) > 0 {
		return errors.New("it takes flags only, see -h")
	}
	log := logs.Logger(stderr)
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	links, err := postgres.Open(opening, database)
	if err != nil {
		return err
	}
	clicks, err := clickhouse.OpenClickStore(opening, counts)
	if err != nil {
		return errors.Join(err, links.Close())
	}
	client, err := stream.New(topics, log)
	if err != nil {
		return errors.Join(err, clicks.Close(), links.Close())
	}
	defer client.Close()
	if err = client.EnsureTopics(opening); err == nil {
		m := move{from: embedded.Dir(cfg.data), links: links, clicks: clicks, topic: client, out: stdout, log: log}
		err = m.run(ctx)
	}
	return errors.Join(err, clicks.Close(), links.Close())
}
