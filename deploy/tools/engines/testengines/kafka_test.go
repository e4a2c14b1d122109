package testengines_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/deploy/tools/engines/testengines"
)

func TestKafka(t *testing.T) {
	t.Parallel()
	testEngine(t, testengines.StartKafka, kafkaStore{topic: "kept"})
}

func TestEmbeddedBrokerReplacesKafka(t *testing.T) {
	t.Setenv(testengines.RequireEnv, "")
	t.Setenv("PATH", "") // so that there is no Java
	testEngine(t, testengines.StartKafka, kafkaStore{topic: "kept"})
}

func TestEmbeddedBrokerDoesNotReplaceRequiredKafka(t *testing.T) {
	t.Setenv(testengines.RequireEnv, "1")
	t.Setenv("PATH", "")
	if e, err := testengines.StartKafka(t.Context(), t.TempDir(), discard); err == nil {
		t.Errorf("got %v", errors.Join(errors.New(e.String()), e.Close()))
	}
}

type kafkaStore struct{ topic string }

func (s kafkaStore) write(ctx context.Context, e *testengines.Engine, value string) error {
	client, done := kafkaClient(e)
	defer done()
	return retry(ctx, func() error {
		created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
			Topics: []kafka.TopicConfig{{Topic: s.topic, NumPartitions: 1, ReplicationFactor: 1}},
		})
		if err != nil {
			return err
		}
		if err := created.Errors[s.topic]; err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			return err
		}
		produced, err := client.Produce(ctx, &kafka.ProduceRequest{Topic: s.topic, RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte(value))})})
		if err != nil {
			return err
		}
		return produced.Error
	})
}

func (s kafkaStore) read(ctx context.Context, e *testengines.Engine) (values []string, err error) {
	client, done := kafkaClient(e)
	defer done()
	res, err := client.Fetch(ctx, &kafka.FetchRequest{Topic: s.topic, MinBytes: 1, MaxBytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	if res.Error != nil {
		return nil, res.Error
	}
	for {
		record, err := res.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		value, err := kafka.ReadAll(record.Value)
		if err != nil {
			return nil, err
		}
		values = append(values, string(value))
	}
	slices.Sort(values)
	return values, nil
}

func kafkaClient(e *testengines.Engine) (client *kafka.Client, done func()) {
	transport := &kafka.Transport{}
	return &kafka.Client{Addr: kafka.TCP(e.Addr), Timeout: time.Minute, Transport: transport},
		transport.CloseIdleConnections
}

// retry calls f until it returns nil. A partition has no leader for a moment after it is created or its broker starts.
func retry(ctx context.Context, f func() error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}
