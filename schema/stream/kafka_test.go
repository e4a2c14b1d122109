//go:build engines

package stream_test

import (
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/stream"
)

var engines enginetest.Engines

func TestMain(m *testing.M) { goleak.VerifyTestMain(engines.Of(m)) }

func TestLagOnKafka(t *testing.T) {
	t.Parallel()
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Partitions = engines.Kafka(t), 3
	cfg.Clicks, cfg.Dead, cfg.Changes = enginetest.Name(), enginetest.Name(), enginetest.Name()
	cfg.Group = enginetest.Name()
	testLag(t, cfg)
}
