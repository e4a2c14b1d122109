//go:build deploy

package outside_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sys/unix"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// TestAlertsOfFaults lets real programs suffer real faults, one after the other. Each alert must fire during its fault
// and not before. Afterwards Prometheus has seen everything that the dashboard shows.
func TestAlertsOfFaults(t *testing.T) {
	t.Parallel()
	s := startWatched(t)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	s.use(t)
	t.Run("no alert fires while everything works, but that of a certificate near its end", func(t *testing.T) {
		s.wantFiring(t, func() { s.use(t) }, "LinkstreamCertificateExpires")
		testkit.Succeeds(t, func() error { // long enough for all windows
			s.use(t)
			found, err := s.query("query", map[string][]string{"query": {`min(count_over_time(linkstream_ready[10m])) >= 15`}})
			if err == nil && len(found) == 0 {
				err = fmt.Errorf("there are fewer than 15 scrapes")
			}
			return err
		})
		now, err := s.firing()
		testkit.Must(t, err)
		testkit.Equal(t, "alerts", now, []string{"LinkstreamCertificateExpires"})
	})
	for _, fault := range []struct {
		name  string
		cause func(t *testing.T, s *watched)
	}{
		{"the topic has a gap, and a record that is no click", breakTopic},
		{"the click store does not have what its marks say", breakCounts},
		{"ClickHouse is away", stopClickHouse},
		{"Postgres is away", stopPostgres},
		{"Kafka is away, and an edge is killed", stopKafka},
		{"a disk is full", fillDisk},
		{"the topic is replaced", replaceTopic},
	} {
		if !t.Run(fault.name, func(t *testing.T) { fault.cause(t, s) }) {
			return
		}
	}
	t.Run("each alert has fired", func(t *testing.T) {
		for _, r := range readRules(t) {
			if !s.fired[r.name] {
				t.Errorf("no fault has fired %s", r.name)
			}
		}
	})
	t.Run("each panel of the dashboard shows something", func(t *testing.T) { testPanels(t, s) })
}

// startWatched starts an api, an ingest, an edge with a certificate that expires soon, and an edge whose spool and disk
// are small.
func startWatched(t *testing.T) *watched {
	t.Helper()
	s := &watched{engines: engines.Lend(t), topics: enginetest.Name(), programs: map[string]*server{},
		fired: map[string]bool{}, disk: disk(t, "16m")}
	s.createTopic(t)
	api, edge, tight, tls := testkit.FreeAddress(t), testkit.FreeAddress(t), testkit.FreeAddress(t), testkit.FreeAddress(t)
	s.api, s.edge, s.tight = "http://"+api, "http://"+edge, "http://"+tight
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	cert, key := testkit.NewAuthority(t).Sign(t, 5*time.Minute, shortHost) // its first hour is over
	testkit.Must(t, errors.Join(os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600)))
	s.add(t, "api", "api", "LINKSTREAM_API_LISTEN="+api, "LINKSTREAM_BOOTSTRAP_EMAIL=owner@example.com",
		"LINKSTREAM_BOOTSTRAP_TOKEN="+watchedToken)
	s.add(t, "ingest", "ingest")
	s.add(t, "edge", "edge", "LINKSTREAM_EDGE_LISTEN="+edge, "LINKSTREAM_SPOOL_DIR="+disk(t, "4g"),
		"LINKSTREAM_EDGE_TLS_LISTEN="+tls, "LINKSTREAM_EDGE_TLS_CERT="+certFile,
		"LINKSTREAM_EDGE_TLS_KEY="+keyFile)
	s.add(t, "tight", "edge", "LINKSTREAM_EDGE_LISTEN="+tight, "LINKSTREAM_SPOOL_DIR="+filepath.Join(s.disk, "spool"),
		fmt.Sprint("LINKSTREAM_SPOOL_MAX_BYTES=", 4*4096*min(8, runtime.NumCPU()))) // four files of 4 KiB for each lane
	for _, p := range s.programs {
		p.start(t)
	}
	for _, p := range s.programs {
		p.awaitReady(t)
	}
	status, answer := s.call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/",`+
		`"custom_alias":"visited"}`)
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	s.startPrometheus(t)
	return s
}

// disk mounts a disk of a size, empty whatever else this machine stores, and returns its path.
func disk(t *testing.T, size string) string {
	t.Helper()
	path := t.TempDir()
	testkit.Must(t, unix.Mount("none", path, "tmpfs", 0, "mode=0700,size="+size))
	t.Cleanup(func() { testkit.Must(t, unix.Unmount(path, unix.MNT_DETACH)) })
	return path
}

// use makes requests that succeed: a click on each edge, statistics.
func (s *watched) use(t *testing.T) {
	t.Helper()
	for _, edge := range []string{s.edge, s.tight} {
		testkit.Equal(t, "status of a visit", visit(t, edge, "/visited"), http.StatusFound)
	}
	s.call(t, http.MethodGet, "/api/v1/stats/visited", "")
}

// withKafka calls use with a client of Kafka.
func (s *watched) withKafka(use func(client *kafka.Client, clicks string)) {
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	use(&kafka.Client{Addr: kafka.TCP(s.engines.Kafka.Addr), Timeout: time.Minute, Transport: transport}, s.topics+
		".clicks")
}

// createTopic creates the topic of clicks, which keeps them for 80 seconds.
func (s *watched) createTopic(t *testing.T) {
	t.Helper()
	s.withKafka(func(client *kafka.Client, clicks string) {
		testkit.Succeeds(t, func() error {
			res, err := client.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{
				Topics: []kafka.TopicConfig{{Topic: clicks, NumPartitions: 2, ReplicationFactor: 1,
					ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "80000"}}}}})
			if err != nil {
				return err
			}
			return res.Errors[clicks]
		})
	})
}

func breakTopic(t *testing.T, s *watched) {
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Clicks = s.engines.Kafka.Addr, s.topics+".clicks"
	client, err := stream.New(cfg, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer client.Close()
	var batch stream.Batch
	batch.Reset(time.Now())
	// see breakCounts
	click := schema.Click{LinkID: 1, AccountID: 1, ClickedAt: time.Now(),
		Lane: schema.Lane{Incarnation: schema.Incarnation{1, 2, 3}}}
	for _, click.Seq = range []uint64{1, 5, schema.MaxSeq} {
		batch.Append(nil, schema.AppendClick(nil, &click))
	}
	batch.Append(nil, []byte("no click"))
	testkit.Must(t, client.Produce(t.Context(), 0, &batch))
	s.wantFiring(t, func() {}, "LinkstreamClicksMissing", "LinkstreamClicksSetAside", "LinkstreamRecordsForged")
}

// breakCounts lets ingest compare the marks again, which it does when it starts: clicks of the lane with a gap are not
// counted, and one of another lane is in the store twice.
func breakCounts(t *testing.T, s *watched) {
	options, err := ch.ParseDSN(s.engines.ClickHouseDatabase)
	testkit.Must(t, err)
	conn, err := ch.Open(options)
	testkit.Must(t, err)
	defer conn.Close()
	ingest := s.programs["ingest"]
	ingest.process.Stop(t)
	testkit.Must(t,
		conn.Exec(t.Context(), `INSERT INTO clicks (* EXCEPT(insert_before)) SELECT * EXCEPT(insert_before) FROM clicks
		WHERE lane_clicks > 0 AND NOT startsWith(incarnation, '\x01\x02\x03') LIMIT 1`))
	ingest.start(t)
	s.wantFiring(t, func() {}, "LinkstreamClicksUncounted", "LinkstreamClicksRecounted")
}

func stopClickHouse(t *testing.T, s *watched) {
	testkit.Must(t, s.engines.ClickHouse.Stop())
	s.wantFiring(t, func() { s.use(t) }, "LinkstreamEngineAway", "LinkstreamNotReady", "LinkstreamAPIErrors",
		"LinkstreamClicksLate", "LinkstreamRetentionNear")
	testkit.Must(t, s.engines.ClickHouse.Start(t.Context()))
	s.programs["ingest"].awaitReady(t)
}

func stopPostgres(t *testing.T, s *watched) {
	testkit.Must(t, s.engines.Postgres.Stop())
	unknown := 0
	s.wantFiring(t, func() {
		unknown++
		testkit.Equal(t, "status of a link that is not cached", visit(t, s.edge, fmt.Sprintf("/unknown%d", unknown)),
			http.StatusServiceUnavailable)
	}, "LinkstreamEdgeErrors")
	testkit.Must(t, s.engines.Postgres.Start(t.Context()))
	s.programs["api"].awaitReady(t)
}

// stopKafka fills the spool of the tight edge, and damages it while the edge is down.
func stopKafka(t *testing.T, s *watched) {
	testkit.Must(t, s.engines.Kafka.Stop())
	if status, answer := s.call(t, http.MethodPatch, "/api/v1/links/visited",
		`{"long_url":"https://example.com/changed"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	s.wantFiring(t, func() {
		for range 20 {
			s.use(t)
		}
	}, "LinkstreamBrokerAway", "LinkstreamSpoolFillsUp", "LinkstreamClicksDropped", "LinkstreamChangesWait")
	edge := s.programs["tight"]
	edge.process.Kill()
	s.wantFiring(t, func() {}, "LinkstreamDown")
	segments, err := filepath.Glob(filepath.Join(s.disk, "spool/*/*.segment"))
	testkit.Must(t, err)
	for _, path := range segments {
		content, err := os.ReadFile(path)
		testkit.Must(t, err)
		for i := 100; i < 110; i++ { // within the first record, behind the header
			content[i] ^= 0xff
		}
		testkit.Must(t, os.WriteFile(path, content, 0o600))
	}
	testkit.Must(t, s.engines.Kafka.Start(t.Context()))
	edge.start(t)
	edge.awaitReady(t)
	s.wantFiring(t, func() {}, "LinkstreamSpoolDamaged")
}

// fillDisk leaves little room on the disk of the tight edge, and then none, so that it cannot write the links that it
// caches.
func fillDisk(t *testing.T, s *watched) {
	fill := func(name string, leave int64) {
		var stat unix.Statfs_t
		testkit.Must(t, unix.Statfs(s.disk, &stat))
		err := os.WriteFile(filepath.Join(s.disk, name), make([]byte, max(0, int64(stat.Bavail)*stat.Bsize-leave)), 0o600)
		if !errors.Is(err, unix.ENOSPC) { // the edge may have taken some of the room meanwhile
			testkit.Must(t, err)
		}
	}
	fill("other", 64<<10)
	s.wantFiring(t, func() {}, "LinkstreamDiskFull")
	fill("rest", 0)
	cached := 0
	s.wantFiring(t, func() {
		cached++
		alias := fmt.Sprintf("cached%d", cached)
		status, answer := s.call(t, http.MethodPost, "/api/v1/shorten",
			fmt.Sprintf(`{"long_url":"https://example.com/%s","custom_alias":%q}`, strings.Repeat("x", 1000), alias))
		if status != http.StatusCreated {
			t.Fatalf("%d %s", status, answer)
		}
		testkit.Equal(t, "status of a visit", visit(t, s.tight, "/"+alias), http.StatusFound)
	}, "LinkstreamSnapshotFails")
	for _, name := range []string{"other", "rest"} {
		testkit.Must(t, os.Remove(filepath.Join(s.disk, name)))
	}
}

func replaceTopic(t *testing.T, s *watched) {
	ingest := s.programs["ingest"]
	ingest.awaitReady(t)
	ingest.process.Stop(t)
	s.withKafka(func(client *kafka.Client, clicks string) {
		testkit.Succeeds(t, func() error {
			res, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{clicks}})
			if err != nil {
				return err
			}
			return res.Errors[clicks]
		})
	})
	s.createTopic(t)
	ingest.start(t)
	s.wantFiring(t, func() { s.use(t) }, "LinkstreamLogReplaced")
}
