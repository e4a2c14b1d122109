package clickhouse

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// batchConn ends the contexts of batches with the batches. While a batch is sent, clickhouse-go watches its context,
// and closes the connection when that is done. On a busy machine it may look a moment after Send has returned: the
// connection is in the pool again then, and the next query would fail.
type batchConn struct{ driver.Conn }

// PrepareBatch implements driver.Conn.
func (c batchConn) PrepareBatch(
	ctx context.Context, query string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	until := untilSent(ctx)
	batch, err := c.Conn.PrepareBatch(until, query, options...)
	if err != nil {
		return nil, err
	}
	return &sentBatch{batch, until}, nil
}

type sentBatch struct {
	driver.Batch
	ctx *sendContext
}

func (b *sentBatch) Send() error {
	defer b.ctx.sent()
	return b.Batch.Send()
}

// sendContext is done when its parent is, unless sent was called before.
type sendContext struct {
	context.Context // the parent
	done            chan struct{}
	sent            func() bool
}

func untilSent(parent context.Context) *sendContext {
	c := &sendContext{Context: parent, done: make(chan struct{})}
	c.sent = context.AfterFunc(parent, func() { close(c.done) })
	return c
}

// Done implements context.Context.
func (c *sendContext) Done() <-chan struct{} { return c.done }

// Err implements context.Context.
func (c *sendContext) Err() error {
	select {
	case <-c.done:
		return c.Context.Err()
	default:
		return nil
	}
}
