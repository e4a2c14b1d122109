package stream_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// TestEnsureTopicsWithoutTheRightToCreate leaves topics to the operator.
func TestEnsureTopicsWithoutTheRightToCreate(t *testing.T) {
	t.Parallel()
	cfg := stream.DefaultConfig()
	cfg.SASL, cfg.Username, cfg.Password = "scram-sha-512", "edge", "secret"
	var acls []kfake.ACL
	for _, operation := range []kmsg.ACLOperation{kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs,
		kmsg.ACLOperationWrite} {
		acls = append(acls, kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: cfg.Clicks,
			Pattern:   kmsg.ACLResourcePatternTypeLiteral,
			Operation: operation, Allow: true})
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.SeedTopics(1, cfg.Clicks),
		kfake.Superuser("PLAIN", "operator", "secret"), kfake.User("SCRAM-SHA-512", "edge", "secret", acls...))
	testkit.Must(t, err)
	defer cluster.Close()
	cfg.Brokers = cluster.ListenAddrs()[0]
	client := streamtest.NewClient(t, cfg)
	testkit.Must(t, client.EnsureTopics(t.Context()))
	testkit.Must(t, client.Produce(t.Context(), 0, batchOf("a")))
}
