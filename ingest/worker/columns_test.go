package worker_test

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"linkstream/ingest/worker"
	"linkstream/schema"
)

// looking is a store that looks at each batch and counts nothing.
type looking struct {
	bottomless
	look func(*schema.ClickBatch)
}

func (s looking) InsertClicks(_ context.Context, batch *schema.ClickBatch) error {
	s.look(batch)
	return nil
}

func TestBatchHasEveryColumn(t *testing.T) {
	const clicks = 10
	batches := 0
	store := looking{look: func(batch *schema.ClickBatch) {
		batches++
		columns := reflect.ValueOf(*batch)
		for _, field := range reflect.VisibleFields(columns.Type()) {
			if field.Type.Kind() != reflect.Slice {
				continue
			}
			if n := columns.FieldByIndex(field.Index).Len(); n != clicks {
				t.Errorf("batch %d: %d rows in column %s, want %d", batches, n, field.Name, clicks)
			}
		}
		for i := range batch.Len() {
			if batch.LinkID[i] != link || batch.AccountID[i] != account || !batch.ClickedAt[i].Equal(noon) {
				t.Errorf("link %d of account %d at %v", batch.LinkID[i], batch.AccountID[i], batch.ClickedAt[i])
			}
		}
	}}
	topic := &endless{body: schema.AppendClickBody(nil, &schema.Click{LinkID: link, AccountID: account, ClickedAt: noon})}
	cfg := worker.Config{MaxBatch: clicks, MaxWait: time.Hour, IdleWait: time.Hour}
	p := worker.NewPartition(0, cfg, topic, store, slog.New(slog.DiscardHandler))
	for range 3 {
		if _, err := p.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if batches != 3 {
		t.Errorf("%d batches", batches)
	}
}
