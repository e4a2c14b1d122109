//go:build engines && nightly

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

// TestLostBroker loses one of three brokers with its disk, lets another one with the same number take its place, and
// then loses a broker that had everything from the beginning. Each click is counted once.
func TestLostBroker(t *testing.T) {
	t.Parallel()
	brokers := enginetest.Brokers(t)
	var addrs []string
	for _, node := range brokers.Nodes {
		addrs = append(addrs, node.Addr)
	}
	env := engineSettings(engines.Postgres(t), strings.Join(addrs, ","), engines.ClickHouse(t))
	s := newServices(t, env, segmentSetting)
	s.start(t)
	c := startLoaded(t, &cluster{system: s})
	c.awaitReplicas(t, len(brokers.Nodes))
	first := c.random.IntN(len(brokers.Nodes))
	for _, lost := range []int{first, (first + 1) % len(brokers.Nodes)} {
		testkit.Must(t, brokers.Lose(lost))
		c.awaitReplicas(t, len(brokers.Nodes)-1)
		c.awaitRise(t, "ingest", counterCounted, 300)
		c.createAndFollow(t)
		testkit.Must(t, brokers.Nodes[lost].Start(t.Context()))
		c.awaitReplicas(t, len(brokers.Nodes))
		c.awaitRise(t, "ingest", counterCounted, 300)
	}
	c.stopAndVerify(t)
}

// TestFrozenBroker lets the broker that leads the topic of changes stand still. Each change reaches both edges in time,
// while there is no leader, while programs look for the new one, and afterwards.
func TestFrozenBroker(t *testing.T) {
	t.Parallel()
	brokers := enginetest.Brokers(t)
	var addrs []string
	for _, node := range brokers.Nodes {
		addrs = append(addrs, node.Addr)
	}
	env := engineSettings(engines.Postgres(t), strings.Join(addrs, ","), engines.ClickHouse(t))
	s := newServices(t, env, longCaches)
	s.start(t)
	_, other := s.startAnother(t, "edge")
	pid, _ := brokers.Nodes[s.leaderOfChanges(t)-1].PID()
	testkit.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	defer func() { testkit.Must(t, syscall.Kill(pid, syscall.SIGCONT)) }()
	n := 0
	for range 60 {
		testkit.Promptly(t, func(within testkit.Within) {
			change := s.cached(t, n)
			call(t, http.MethodGet, other+"/"+change.hash, "", "Host", address(s.edge))
			s.change(t, n)
			n++
			within(fmt.Sprintf("change %d", n), time.Second, func() {
				for _, edge := range []string{s.edge, other} {
					testkit.Succeeds(t, func() error {
						a := call(t, http.MethodGet, edge+"/"+change.hash, "", "Host", address(s.edge))
						if a.Header.Get("Location") == change.old {
							return fmt.Errorf("the change is not seen: %v", a)
						}
						return nil
					})
				}
			})
			<-time.After(200 * time.Millisecond)
		})
	}
}

// leaderOfChanges returns the number of the broker that leads the topic of changes.
func (s *system) leaderOfChanges(t *testing.T) (leader int) {
	t.Helper()
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(strings.Split(s.setting("LINKSTREAM_KAFKA_BROKERS"), ",")...),
		Transport: transport}
	testkit.Succeeds(t, func() error {
		topic := s.setting("LINKSTREAM_KAFKA_CHANGES_TOPIC")
		res, err := client.Metadata(t.Context(), &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return err
		}
		if len(res.Topics) != 1 || res.Topics[0].Error != nil || len(res.Topics[0].Partitions) == 0 {
			return fmt.Errorf("no topic of changes: %v", res.Topics)
		}
		leader = res.Topics[0].Partitions[0].Leader.ID
		return nil
	})
	return leader
}

// awaitReplicas returns when so many brokers have all that is in the topics.
func (c *loadedCluster) awaitReplicas(t *testing.T, want int) {
	t.Helper()
	client, clicks, disconnect := c.kafkaClient()
	defer disconnect()
	topics := []string{clicks, c.setting("LINKSTREAM_KAFKA_CHANGES_TOPIC"), "__consumer_offsets"}
	testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
		res, err := client.Metadata(t.Context(), &kafka.MetadataRequest{Topics: topics})
		if err != nil {
			return err
		}
		for _, topic := range res.Topics {
			if topic.Error != nil || len(topic.Partitions) == 0 {
				return fmt.Errorf("topic %q: %w", topic.Name, topic.Error)
			}
			for _, p := range topic.Partitions {
				if len(p.Isr) != want {
					return fmt.Errorf("partition %d of %q is on %d brokers, want %d", p.ID, topic.Name, len(p.Isr), want)
				}
			}
		}
		return nil
	})
}
