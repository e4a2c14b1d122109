//go:build engines && nightly

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// TestRestoredEngines follows the operator's manual: it restores one engine after the other to an earlier moment,
// under load, by the commands of the manual. Each click is counted once, or the number of lost ones is known.
func TestRestoredEngines(t *testing.T) {
	t.Parallel()
	c := startLoadedCluster(t, "LINKSTREAM_EDGE_CACHE_TTL=1s")
	manual := c.manual(t)
	c.restoreClickHouse(t, manual)
	c.restorePostgres(t, manual)
	c.stopAndVerify(t)
	c.loseTopic(t)
}

// operator is a shell that runs the commands of the manual.
type operator struct {
	shell    *shell
	commands map[string][]step // by section
}

// manual returns an operator for the cluster.
func (c *loadedCluster) manual(t *testing.T) *operator {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(launch.Root(), "deploy", "manual", "backup.md"))
	testkit.Must(t, err)
	database, err := url.Parse(c.setting("LINKSTREAM_CLICKHOUSE_DSN"))
	testkit.Must(t, err)
	name := strings.TrimPrefix(database.Path, "/")
	// The database and the backup have other names here, because others share the engine.
	here := regexp.MustCompile(`(DATABASE|File\(')( ?)linkstream`).ReplaceAllString(string(readme), "${1}${2}"+name)
	env := append([]string{"POSTGRES=" + c.setting("LINKSTREAM_POSTGRES_DSN"),
		"PATH=" + c.postgres.Source + ":" + os.Getenv("PATH")}, c.postgres.ToolEnv...)
	o := &operator{startShell(t, env...), map[string][]step{}}
	o.shell.run(t, "cd "+t.TempDir())
	const client = "clickhouse-client() { curl --max-time 40 -sS --fail-with-body --data-binary \"$2\" '%s'; }"
	o.shell.run(t, fmt.Sprintf(client, c.clickhouse.HTTPAddr))
	for section, want := range map[string]int{"Postgres": 4, "ClickHouse": 3} {
		if o.commands[section] = commandsBelow("### "+section, here); len(o.commands[section]) != want {
			t.Fatalf("the manual has %d commands for %s, want %d: the first backs up, the others restore",
				len(o.commands[section]), section, want)
		}
	}
	return o
}

func (o *operator) backUp(t *testing.T, section string) {
	t.Helper()
	o.shell.run(t, o.commands[section][0].command)
}

func (o *operator) restore(t *testing.T, section string) {
	t.Helper()
	for _, step := range o.commands[section][1:] {
		o.shell.run(t, step.command)
	}
}

// restoreClickHouse restores ClickHouse to an earlier moment. Ingest counts again what came since.
func (c *loadedCluster) restoreClickHouse(t *testing.T, manual *operator) {
	ingest, owner := c.program("ingest"), c.owner()
	c.createAndFollow(t)
	counted := c.visits[len(c.visits)-1].hash
	owner.WaitTotal(t, counted, 1)
	manual.backUp(t, "ClickHouse")
	c.followAgain(t, counted, 5)
	owner.WaitTotal(t, counted, 6)
	ingest.wantNoLosses(t)
	ingest.stop(t)
	manual.restore(t, "ClickHouse")
	if n := owner.Total(t, counted); n != 1 {
		t.Errorf("%d clicks are counted after the restore, want 1, as when the backup was made", n)
	}
	c.followAgain(t, counted, 1)
	ingest.start(t)
	owner.WaitTotal(t, counted, 7)
}

// followAgain follows a link some times.
func (c *loadedCluster) followAgain(t *testing.T, hash string, times int) {
	t.Helper()
	for range times {
		c.click(t, hash)
	}
	c.note(target{hash: hash, answered: int64(times)})
}

// restorePostgres restores Postgres to an earlier moment. Links that were created since are gone, and no other link
// gets their clicks.
func (c *loadedCluster) restorePostgres(t *testing.T, manual *operator) {
	owner := c.owner()
	manual.backUp(t, "Postgres")
	var lost []string
	for range 3 {
		hash := owner.Link(t, object{"long_url": "https://example.com/lost"})["hash"].(string)
		c.click(t, hash)
		c.click(t, hash)
		lost = append(lost, hash)
	}
	for _, hash := range lost {
		owner.WaitTotal(t, hash, 2)
	}
	manual.restore(t, "Postgres")
	for _, hash := range lost {
		owner.Get(t, "/api/v1/stats/"+hash).Want(t, http.StatusNotFound)
		testkit.Succeeds(t, func() error { return c.visit(t, http.MethodHead, "/"+hash).IsStatus(http.StatusNotFound) })
	}
	later := owner.Link(t, object{"long_url": "https://example.com/later"})["hash"].(string)
	c.followAgain(t, later, 1)
	owner.WaitTotal(t, later, 1) // and not those of a link that is gone
}

// loseTopic loses the topic with acknowledged clicks that are not counted. Ingest says how many.
func (c *loadedCluster) loseTopic(t *testing.T) {
	const lost = 7
	later := int64(4)
	edge, ingest, owner, hash := c.program("edge"), c.program("ingest"), c.owner(), c.links[0]
	before := owner.Total(t, hash)
	ingest.stop(t)
	for range lost {
		c.click(t, hash)
	}
	edge.awaitMetric(t, gaugePending, func(n float64) bool { return n == 0 })
	client, topic, disconnect := c.kafkaClient()
	defer disconnect()
	res, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	testkit.Must(t, err)
	testkit.Must(t, res.Errors[topic])
	c.awaitNoTopic(t)
	for range later {
		c.click(t, hash)
	}
	ingest.start(t)                                              // creates the topic
	ingest.awaitMetric(t, counterMissing, func(n float64) bool { // the next click of a lane shows how many it has lost
		if n < lost {
			c.click(t, hash)
			later++
		}
		return n == lost
	})
	owner.WaitTotal(t, hash, before+later)
	if ingest.metric(t, counterEpochs) == 0 {
		t.Error("ingest has not seen that the log is another one")
	}
}

// kafkaClient returns a client of the brokers, to be closed, and the name of the topic of clicks.
func (c *loadedCluster) kafkaClient() (client *kafka.Client, topic string, disconnect func()) {
	transport := new(kafka.Transport)
	client = &kafka.Client{Addr: kafka.TCP(strings.Split(c.setting("LINKSTREAM_KAFKA_BROKERS"), ",")...),
		Timeout: time.Minute, Transport: transport}
	return client, c.setting("LINKSTREAM_KAFKA_CLICKS_TOPIC"), transport.CloseIdleConnections
}

// awaitNoTopic returns when brokers have none of the deleted topic's partitions any more. The answer to the deletion
// does not say so: they acknowledge clicks, and lose them, until they have heard of it.
func (c *loadedCluster) awaitNoTopic(t *testing.T) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		ends, err := c.logEnds(t.Context())
		if !errors.Is(err, kafka.UnknownTopicOrPartition) {
			return fmt.Errorf("the deleted topic ends at %v, error %v", ends, err)
		}
		for p, end := range ends {
			if end >= 0 {
				return fmt.Errorf("partition %d of the deleted topic ends at %d", p, end)
			}
		}
		return nil
	})
}

// logEnds returns the log end offsets of all partitions.
func (c *loadedCluster) logEnds(ctx context.Context) (map[int]int64, error) {
	client, topic, disconnect := c.kafkaClient()
	defer disconnect()
	var requests []kafka.OffsetRequest
	for p := range partitions {
		requests = append(requests, kafka.LastOffsetOf(p))
	}
	res, err := client.ListOffsets(ctx,
		&kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: requests}})
	if err != nil {
		return nil, err
	}
	ends := make(map[int]int64)
	for _, p := range res.Topics[topic] {
		ends[p.Partition], err = p.LastOffset, errors.Join(err, p.Error)
	}
	return ends, err
}
