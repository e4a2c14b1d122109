package outside_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

const kafkaPassword = "password of every user"

// TestKafkaUsers runs the programs on a broker that grants each of them what the overlay operators grants its user.
func TestKafkaUsers(t *testing.T) {
	t.Parallel()
	bin, err := testengines.GoPrograms(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)), kustomize)
	testkit.Must(t, err)
	var resources []resource
	parseManifests(t, python(t), pipe(t, nil, filepath.Join(bin, "kustomize"), "build", "../../kubernetes/overlays/operators"), &resources)
	testManualGrantsTheSame(t, resources)
	brokers := startKafkaWithUsers(t, resources)
	edge, api := testkit.FreeAddress(t), testkit.FreeAddress(t)
	postgres, clickhouse := "-postgres.dsn="+engines.Postgres(t), "-clickhouse.dsn="+engines.ClickHouse(t)
	token := "ls_" + strings.Repeat("t", 32)
	kafka := func(program string) []string {
		return []string{"-kafka.brokers=" + brokers, "-kafka.sasl=scram-sha-512", "-kafka.username=linkstream-" + program,
			"-kafka.password=" + kafkaPassword}
	}
	start := func(program string, args ...string) (ops string) {
		ops = testkit.FreeAddress(t)
		args = append(args, kafka(program)...)
		launch.Start(t, launch.Command(launch.Program(t, program), nil, append(args, "-ops.listen="+ops)...)).AwaitReady(t, "http://"+ops)
		return "http://" + ops
	}
	url := "-edge.url=http://" + edge
	start("api", "-api.listen="+api, url, postgres, clickhouse, "-bootstrap.email=you@example.com", "-bootstrap.token="+token)
	counting := start("ingest", clickhouse)
	start("edge", "-edge.listen="+edge, url, postgres, "-spool.dir="+t.TempDir(), "-edge.cache-ttl=1h")
	call := func(method, path, body string) (status int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+api+path, strings.NewReader(body))
		testkit.Must(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		return send(t, req)
	}
	visit := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+edge+"/known", nil)
		testkit.Must(t, err)
		return send(t, req)
	}

	testkit.Equal(t, "status of a new link", call("POST", "/api/v1/shorten", `{"long_url":"https://example.com/","custom_alias":"known"}`), 201)
	testkit.Equal(t, "status of a visit", visit(), http.StatusFound)
	testkit.Eventually(t, "the click is counted", func() bool {
		return launch.Metric(t, counting, "linkstream_ingest_clicks_counted_total") == 1
	})
	testkit.Equal(t, "status of a change", call("PATCH", "/api/v1/links/known", `{"is_active":false}`), 200)
	testkit.Eventually(t, "the edge follows the change", func() bool { return visit() != http.StatusFound })
	run(t, launch.Program(t, "ingest"), append(kafka("ingest"), clickhouse, "verify")...)

	for program, may := range map[string]bool{"edge": true, "ingest": false, "api": false} {
		cfg := stream.DefaultConfig()
		cfg.Brokers, cfg.SASL, cfg.Username, cfg.Password = brokers, "scram-sha-512", "linkstream-"+program, kafkaPassword
		var batch stream.Batch
		batch.Reset(time.Now())
		batch.Append(nil, schema.AppendClick(nil, &schema.Click{Seq: 1, LinkID: 1 << 40, ClickedAt: time.Now()}))
		err := streamtest.NewClient(t, cfg).Produce(t.Context(), 0, &batch)
		if (err == nil) != may {
			t.Errorf("%s writes clicks: error %v", program, err)
		}
	}
}

// testManualGrantsTheSame compares the commands of the manual with the users of the overlay.
func testManualGrantsTheSame(t *testing.T, resources []resource) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(launch.Root(), "deploy/manual/scale.md"))
	testkit.Must(t, err)
	var want, got []string
	for _, granted := range regexp.MustCompile(`(?m)^acl (\S+) '(.*)' --(topic|group) (\S+)$`).FindAllStringSubmatch(string(page), -1) {
		got = append(got, strings.Join(granted[1:], " "))
	}
	for _, r := range resources {
		if r.Kind == "KafkaUser" {
			for _, acl := range r.Spec.Authorization.ACLs {
				want = append(want, strings.Join([]string{strings.TrimPrefix(r.Metadata.Name, "linkstream-"), strings.Join(acl.Operations, " "),
					acl.Resource.Type, acl.Resource.Name}, " "))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	testkit.Equal(t, "ACLs in the manual", got, want)
}

// send returns the status of the answer to a request.
func send(t *testing.T, req *http.Request) int {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req)
	testkit.Must(t, err)
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	testkit.Must(t, err)
	return res.StatusCode
}

// startKafkaWithUsers starts a broker with the topics and users of the manifests, and returns its address.
func startKafkaWithUsers(t *testing.T, resources []resource) (brokers string) {
	t.Helper()
	options := []kfake.Opt{kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "operator", kafkaPassword)}
	for _, r := range resources {
		switch r.Kind {
		case "KafkaTopic":
			options = append(options, kfake.SeedTopics(int32(r.Spec.Partitions), r.Metadata.Name))
		case "KafkaUser":
			var acls []kfake.ACL
			for _, granted := range r.Spec.Authorization.ACLs {
				for _, operation := range granted.Operations {
					acl := kfake.ACL{Name: granted.Resource.Name, Allow: true, Pattern: kmsg.ACLResourcePatternTypeLiteral}
					var err error
					acl.Resource, err = kmsg.ParseACLResourceType(granted.Resource.Type)
					testkit.Must(t, err)
					acl.Operation, err = kmsg.ParseACLOperation(operation)
					testkit.Must(t, err)
					testkit.Equal(t, "pattern of "+fmt.Sprint(granted.Resource), granted.Resource.PatternType, "literal")
					acls = append(acls, acl)
				}
			}
			options = append(options, kfake.User(strings.ToUpper(r.Spec.Authentication.Type), r.Metadata.Name, kafkaPassword, acls...))
		}
	}
	cluster, err := kfake.NewCluster(options...)
	testkit.Must(t, err)
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}
