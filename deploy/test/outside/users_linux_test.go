//go:build linux && deploy

package outside_test

import (
	"crypto/pbkdf2"
	"crypto/sha512"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/segmentio/kafka-go"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

const kafkaPassword = "password of every user"

// TestUsersOfEngines runs the programs on a Kafka that lets each of them do what the manual allows its user, and on a
// ClickHouse that lets them do what the manual grants. TestManual runs what the manual says about Postgres.
func TestUsersOfEngines(t *testing.T) {
	t.Parallel()
	kafkaOf, operator := startKafkaWithUsers(t)
	edge, api := testkit.FreeAddress(t), testkit.FreeAddress(t)
	postgres, clickhouse := "-postgres.dsn="+engines.Postgres(t), "-clickhouse.dsn="+startClickHouseWithUser(t)
	token := "ls_" + strings.Repeat("t", 32)
	start := func(program string, args ...string) (ops string) {
		ops = testkit.FreeAddress(t)
		args = append(args, kafkaOf(program)...)
		launch.Start(t, launch.Command(launch.Program(t, program), nil, append(args, "-ops.listen="+ops)...)).AwaitReady(t,
			"http://"+ops)
		return "http://" + ops
	}
	url := "-edge.url=http://" + shortHost
	start("api", "-api.listen="+api, url, postgres, clickhouse, "-bootstrap.email=you@example.com", "-bootstrap.token="+
		token)
	counting := start("ingest", clickhouse)
	start("edge", "-edge.listen="+edge, url, postgres, "-spool.dir="+t.TempDir(), "-edge.cache-ttl=1h")
	call := func(method, path, body string) int {
		status, _ := callAPI(t, "http://"+api, token, method, path, body)
		return status
	}
	visit := func() int { return visit(t, "http://"+edge, "/known") }

	testkit.Equal(t, "status of a new link",
		call("POST", "/api/v1/shorten", `{"long_url":"https://example.com/","custom_alias":"known"}`), 201)
	testkit.Equal(t, "status of a visit", visit(), http.StatusFound)
	testkit.Eventually(t, "the click is counted", func() bool {
		return launch.Metric(t, counting, "linkstream_ingest_clicks_counted_total") == 1
	})
	for _, path := range []string{"/api/v1/stats/known", "/api/v1/report", "/api/v1/links"} {
		testkit.Equal(t, "status of "+path, call("GET", path, ""), 200)
	}
	testkit.Equal(t, "status of a change", call("PATCH", "/api/v1/links/known", `{"is_active":false}`), 200)
	testkit.Eventually(t, "the edge follows the change", func() bool { return visit() != http.StatusFound })
	run(t, launch.Program(t, "ingest"), append(kafkaOf("ingest"), clickhouse, "verify")...)

	partitions, err := streamtest.NewClient(t, configOf(t, "-kafka.brokers="+operator)).Partitions(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, "partitions", partitions, 8)
	for program, may := range map[string]bool{"edge": true, "ingest": false, "api": false} {
		var batch stream.Batch
		batch.Reset(time.Now())
		batch.Append(nil, schema.AppendClick(nil, &schema.Click{Seq: 1, LinkID: 1 << 40, ClickedAt: time.Now()}))
		err := streamtest.NewClient(t, configOf(t, kafkaOf(program)...)).Produce(t.Context(), 0, &batch)
		if (err == nil) != may {
			t.Errorf("%s writes clicks: error %v", program, err)
		}
	}
}

// configOf returns the configuration of a client of Kafka that has these flags.
func configOf(t *testing.T, args ...string) (cfg stream.Config) {
	t.Helper()
	cfg = stream.DefaultConfig()
	flags := flag.NewFlagSet(t.Name(), flag.ContinueOnError)
	cfg.RegisterFlags(flags)
	testkit.Must(t, flags.Parse(args))
	return cfg
}

// startClickHouseWithUser starts a ClickHouse whose user may do what the commands of the manual grant, and returns the
// address of a database.
func startClickHouseWithUser(t *testing.T) (dsn string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(launch.Root(), "deploy/manual/scale.md"))
	testkit.Must(t, err)
	var grants []string
	grant := regexp.MustCompile(`(?m)^clickhouse-client --query '(GRANT .*) TO linkstream'$`)
	for _, granted := range grant.FindAllStringSubmatch(string(page), -1) {
		grants = append(grants, granted[1])
	}
	if len(grants) == 0 {
		t.Fatal("the manual grants nothing in ClickHouse")
	}
	server := enginetest.Own(t, testengines.ChserverWith(strings.Join(grants, ";")))
	options, err := ch.ParseDSN(server.Addr)
	testkit.Must(t, err)
	conn, err := ch.Open(options)
	testkit.Must(t, err)
	defer testkit.Close(t, conn)
	testkit.Must(t, conn.Exec(t.Context(), "CREATE DATABASE linkstream"))
	if err := conn.Exec(t.Context(), "CREATE DATABASE other"); err == nil {
		t.Fatal("the user may do what is not granted: this test cannot fail")
	}
	return strings.TrimSuffix(server.Addr, "/default") + "/linkstream"
}

// startKafkaWithUsers starts a Kafka with the topics, creates a user for each program, and lets the commands of the
// manual say what they may do. It returns the flags of a program, and the address for whoever may do everything.
func startKafkaWithUsers(t *testing.T) (flags func(program string) []string, operator string) {
	t.Helper()
	secure, operator := enginetest.SecureKafka(t)
	cfg := stream.DefaultConfig()
	cfg.Brokers = operator
	testkit.Must(t, streamtest.NewClient(t, cfg).EnsureTopics(t.Context()))
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(operator), Transport: transport}
	const iterations = 4096
	salt := []byte("salt")
	salted, err := pbkdf2.Key(sha512.New, kafkaPassword, salt, iterations, sha512.Size)
	testkit.Must(t, err)
	request := kafka.AlterUserScramCredentialsRequest{}
	for _, program := range []string{"edge", "ingest", "api"} {
		request.Upsertions = append(request.Upsertions, kafka.UserScramCredentialsUpsertion{Name: program,
			Mechanism:  kafka.ScramMechanismSha512,
			Iterations: iterations, Salt: salt, SaltedPassword: salted})
	}
	res, err := client.AlterUserScramCredentials(t.Context(), &request)
	testkit.Must(t, err)
	for _, result := range res.Results {
		testkit.Must(t, result.Error)
	}
	runManualOfKafka(t, operator)
	return func(program string) []string {
		return []string{"-kafka.brokers=" + secure.Addr, "-kafka.tls", "-kafka.tls-ca=" + secure.CertFile,
			"-kafka.sasl=scram-sha-512", "-kafka.username=" + program, "-kafka.password=" + kafkaPassword}
	}, operator
}

// runManualOfKafka runs the commands of the manual that need the programs of Kafka's distribution.
func runManualOfKafka(t *testing.T, operator string) {
	t.Helper()
	tools, err := testengines.MavenLibraries(t.Context(), logger(t), "testdata/kafkatools/pom.xml")
	testkit.Must(t, err)
	bin := t.TempDir()
	for name, class := range map[string]string{"kafka-acls.sh": "AclCommand", "kafka-topics.sh": "TopicCommand"} {
		script := fmt.Sprintf("#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -cp '%s/*' org.apache.kafka.tools.%s \"$@\"\n",
			tools, class)
		testkit.Must(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700))
	}
	blocks := map[string]int{"Who may write to Kafka": 1, "Partitions": 1}
	for _, b := range readManual(t) {
		if title := b.section[strings.LastIndex(b.section, "/")+1:]; b.kind == "sh" && blocks[title] > 0 {
			blocks[title]--
			run(t, "bash", "-euo", "pipefail", "-c", "PATH="+bin+":$PATH\n"+strings.ReplaceAll(b.text, "kafka.internal:9092",
				operator))
		}
	}
	testkit.Equal(t, "blocks that were not run", blocks, map[string]int{"Who may write to Kafka": 0, "Partitions": 0})
}
