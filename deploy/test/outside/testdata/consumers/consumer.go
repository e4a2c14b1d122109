// Command consumer counts the clicks of each link that a topic has: consumer BROKER TOPIC.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/segmentio/kafka-go"
	"google.golang.org/protobuf/encoding/protowire"
)

type lane struct {
	partition   int
	incarnation string
	number      uint64
}

func main() {
	ctx, marks, clicks := context.Background(), map[lane]uint64{}, map[uint64]int{}
	partitions, err := kafka.LookupPartitions(ctx, "tcp", os.Args[1], os.Args[2])
	check(err)
	for _, p := range partitions {
		conn, err := kafka.DialLeader(ctx, "tcp", os.Args[1], p.Topic, p.ID)
		check(err)
		next, end, err := conn.ReadOffsets()
		check(err)
		reader := kafka.NewReader(kafka.ReaderConfig{Brokers: os.Args[1:2], Topic: p.Topic, Partition: p.ID})
		for next < end {
			record, err := reader.ReadMessage(ctx)
			check(err)
			next = record.Offset + 1
			incarnation, number, seq, link := decode(record.Value)
			if of := (lane{p.ID, incarnation, number}); seq > marks[of] {
				marks[of] = seq
				clicks[link]++
			}
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(clicks))
}

func decode(data []byte) (incarnation string, number, seq, link uint64) {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		check(protowire.ParseError(n))
		size := protowire.ConsumeFieldValue(field, kind, data[n:])
		check(protowire.ParseError(size))
		value := data[n : n+size]
		data = data[n+size:]
		switch field {
		case 1:
			bytes, _ := protowire.ConsumeBytes(value)
			incarnation = string(bytes)
		case 2:
			number, _ = protowire.ConsumeVarint(value)
		case 3:
			seq, _ = protowire.ConsumeVarint(value)
		case 4:
			link, _ = protowire.ConsumeVarint(value)
		}
	}
	return incarnation, number, seq, link
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
