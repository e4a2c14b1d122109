package spool_test

import (
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// A redirect handler appends clicks. They stay in the spool, also across restarts, until their shipper acknowledges
// them.
func Example() {
	dir, err := os.MkdirTemp("", "spool-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cfg := spool.DefaultConfig()
	cfg.Dir, cfg.Lanes = dir, 1
	s, err := spool.Open(cfg, slog.Default())
	if err != nil {
		log.Fatal(err)
	}

	// The handler of a redirect. Its hint, here 0, is the ID of the connection.
	for link := range int64(3) {
		s.Append(0, &schema.Click{LinkID: link + 1, ClickedAt: time.Now(), UserAgent: []byte("browser")})
	}
	fmt.Println("pending:", s.Pending())

	// A Shipper handles each lane like this.
	lane := s.Lanes()[0]
	var batch stream.Batch
	lane.Read(&batch, 1<<20)
	for i := range batch.Len() {
		var click schema.Click
		if err := schema.DecodeClick(batch.Value(i), &click); err != nil {
			log.Fatal(err)
		}
		fmt.Println("seq", click.Seq, "of lane", click.Lane.Number, "is on link", click.LinkID)
	}
	if err := lane.Acknowledge(); err != nil { // once the broker has the batch
		log.Fatal(err)
	}
	fmt.Println("pending:", s.Pending())
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// pending: 3
	// seq 1 of lane 0 is on link 1
	// seq 2 of lane 0 is on link 2
	// seq 3 of lane 0 is on link 3
	// pending: 0
}
