package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// safeReplicas is the replication factor of created topics where there are as many brokers. Two of the replicas must
// have a record before it is acknowledged: it survives any one broker, and one broker may be away.
const (
	safeReplicas = 3
	safeInSync   = 2
)

// EnsureTopics creates the topics that do not exist. It leaves existing topics as they are, skips topics that the user
// may not create, and warns of a clicks topic whose configuration may lose clicks.
func (c *Client) EnsureTopics(ctx context.Context) error {
	brokers, err := c.brokerCount(ctx)
	if err != nil {
		return fmt.Errorf("create topics: %w", c.explain(ctx, err))
	}
	replicas := c.cfg.Replicas
	if replicas == -1 && brokers >= safeReplicas {
		replicas = safeReplicas
	}
	keep := []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: retentionMillis(c.cfg.Retention)}}
	compact := []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}}
	if replicas >= safeReplicas {
		inSync := kafka.ConfigEntry{ConfigName: "min.insync.replicas", ConfigValue: strconv.Itoa(safeInSync)}
		keep, compact = append(keep, inSync), append(compact, inSync)
	}
	res, err := c.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: c.cfg.Clicks, NumPartitions: c.cfg.Partitions, ReplicationFactor: replicas, ConfigEntries: keep},
		{Topic: c.cfg.Dead, NumPartitions: 1, ReplicationFactor: replicas, ConfigEntries: keep},
		{Topic: c.cfg.Changes, NumPartitions: 1, ReplicationFactor: replicas, ConfigEntries: compact},
	}})
	if err != nil {
		return fmt.Errorf("create topics: %w", c.explain(ctx, err))
	}
	for topic, err := range res.Errors {
		// A broker that does not let a user create a topic does not say whether the topic exists.
		if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) && !errors.Is(err, kafka.TopicAuthorizationFailed) {
			return fmt.Errorf("create topic %q: %w", topic, err)
		}
	}
	if res.Errors[c.cfg.Clicks] != nil { // it was not created
		c.warnOfClicksTopic(ctx, brokers)
	}
	return nil
}

// brokerCount returns the number of brokers.
func (c *Client) brokerCount(ctx context.Context) (int, error) {
	res, err := c.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return 0, err
	}
	return len(res.Brokers), nil
}

// retentionMillis returns a value of retention.ms.
func retentionMillis(d time.Duration) string {
	if d == 0 {
		return "-1"
	}
	return fmt.Sprint(d.Milliseconds())
}

// Retention returns how long the clicks topic keeps records, 0 if for ever.
func (c *Client) Retention(ctx context.Context) (time.Duration, error) {
	settings, err := c.clicksSettings(ctx)
	if err != nil {
		return 0, fmt.Errorf("read configuration of topic %q: %w", c.cfg.Clicks, err)
	}
	return retention(settings), nil
}

// retention returns the retention in a topic's configuration, 0 if it keeps records for ever.
func retention(settings map[string]string) time.Duration {
	millis, err := strconv.ParseInt(settings["retention.ms"], 10, 64)
	if err != nil || millis < 0 || millis > math.MaxInt64/int64(time.Millisecond) {
		return 0
	}
	return time.Duration(millis) * time.Millisecond
}

// warnOfClicksTopic logs what in the configuration of the clicks topic may lose clicks.
func (c *Client) warnOfClicksTopic(ctx context.Context, brokers int) {
	settings, err := c.clicksSettings(ctx)
	if err != nil {
		c.log.Warn("cannot check the configuration of the clicks topic", "topic", c.cfg.Clicks, "error", err)
		return
	}
	warn := func(risk, setting string) {
		c.log.Warn(risk, "topic", c.cfg.Clicks, setting, settings[setting])
	}
	if kept := retention(settings); kept > 0 && (c.cfg.Retention == 0 || kept < c.cfg.Retention) {
		warn("the topic's retention is shorter than -kafka.retention: clicks that are not counted by then are lost",
			"retention.ms")
	}
	if limit, err := strconv.ParseInt(settings["retention.bytes"], 10, 64); err == nil && limit >= 0 {
		warn("the topic's size is limited: clicks that are not counted when it is reached are lost", "retention.bytes")
	}
	if strings.Contains(settings["cleanup.policy"], "compact") {
		warn("the clicks topic must not be compacted", "cleanup.policy")
	}
	if settings["unclean.leader.election.enable"] == "true" {
		warn("an unclean leader election loses clicks that were acknowledged", "unclean.leader.election.enable")
	}
	replicas := c.clicksReplicas(ctx)
	if replicas > 0 && replicas < min(brokers, safeReplicas) {
		c.log.Warn("clicks that are not counted are lost with the disks of so many brokers", "topic", c.cfg.Clicks,
			"replicas", replicas, "recommended", min(brokers, safeReplicas))
	}
	if settings["min.insync.replicas"] == "1" && replicas > 1 {
		warn("a click is acknowledged when one replica has it, and lost with this replica", "min.insync.replicas")
	}
}

// clicksSettings returns the configuration of the clicks topic.
func (c *Client) clicksSettings(ctx context.Context) (map[string]string, error) {
	res, err := c.client.DescribeConfigs(ctx,
		&kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: c.cfg.Clicks}}})
	if err != nil {
		return nil, err
	}
	settings := make(map[string]string)
	for _, resource := range res.Resources {
		if resource.Error != nil {
			return nil, resource.Error
		}
		for _, entry := range resource.ConfigEntries {
			settings[entry.ConfigName] = entry.ConfigValue
		}
	}
	return settings, nil
}

// clicksReplicas returns the replication factor of the clicks topic, or 0 after an error.
func (c *Client) clicksReplicas(ctx context.Context) int {
	res, err := c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{c.cfg.Clicks}})
	if err != nil || len(res.Topics) != 1 || len(res.Topics[0].Partitions) == 0 {
		return 0
	}
	return len(res.Topics[0].Partitions[0].Replicas)
}
