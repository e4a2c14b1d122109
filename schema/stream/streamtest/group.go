package streamtest

import (
	"context"
	"errors"
	"testing"

	"github.com/segmentio/kafka-go"

	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// CommittedOffsets returns the consumer group's offsets in the clicks partitions 0 to partitions-1, -1 for a partition
// without a commit.
func CommittedOffsets(t testing.TB, cfg stream.Config, partitions int) []int64 {
	t.Helper()
	numbers, offsets := make([]int, partitions), make([]int64, partitions)
	for p := range partitions {
		numbers[p], offsets[p] = p, -1
	}
	client, closeClient := admin(cfg)
	defer closeClient()
	res, err := client.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{GroupID: cfg.Group,
		Topics: map[string][]int{cfg.Clicks: numbers}})
	testkit.Must(t, err)
	for _, p := range res.Topics[cfg.Clicks] {
		testkit.Must(t, p.Error)
		offsets[p.Partition] = p.CommittedOffset
	}
	return offsets
}

// CommitOffsets sets the consumer group's offsets, by partition. It waits until the group has no members.
func CommitOffsets(t testing.TB, cfg stream.Config, offsets map[int]int64) {
	t.Helper()
	var commits []kafka.OffsetCommit
	for partition, offset := range offsets {
		commits = append(commits, kafka.OffsetCommit{Partition: partition, Offset: offset})
	}
	client, closeClient := admin(cfg)
	defer closeClient()
	testkit.Succeeds(t, func() error {
		res, err := client.OffsetCommit(context.Background(), &kafka.OffsetCommitRequest{GroupID: cfg.Group, GenerationID: -1,
			Topics: map[string][]kafka.OffsetCommit{cfg.Clicks: commits}})
		if err != nil {
			return err
		}
		for _, p := range res.Topics[cfg.Clicks] {
			err = errors.Join(err, p.Error)
		}
		return err
	})
}

func admin(cfg stream.Config) (client *kafka.Client, closeClient func()) {
	transport := new(kafka.Transport)
	return &kafka.Client{Addr: kafka.TCP(cfg.Brokers), Transport: transport}, transport.CloseIdleConnections
}
