package groupcommit_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"linkstream/schema/groupcommit"
)

// The rows of a table get their numbers from one transaction per batch.
func Example() {
	type row struct {
		name   string
		number int
	}
	var table []string
	rows := groupcommit.New(groupcommit.Limits{Batch: 256, Queue: 8192, Timeout: 10 * time.Second},
		func(ctx context.Context, batch []*groupcommit.Call[row]) error {
			// A store begins a transaction here and commits it below. Batches do not overlap, so table needs no lock.
			for _, call := range batch {
				if call.Value.name == "" {
					call.Err = fmt.Errorf("a row needs a name") // the outcome of this call alone
					continue
				}
				table = append(table, call.Value.name)
				call.Value.number = len(table)
			}
			return nil // an error would be the outcome of the whole batch
		})

	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() { rows.Submit(context.Background(), row{name: "Alice"}) })
	}
	callers.Wait()

	last, err := rows.Submit(context.Background(), row{name: "Bob"})
	fmt.Println(last.number, err)
	_, err = rows.Submit(context.Background(), row{})
	fmt.Println(err)
	// Output:
	// 101 <nil>
	// a row needs a name
}
