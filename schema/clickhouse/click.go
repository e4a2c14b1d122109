package clickhouse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
)

// ClickStore counts clicks. All methods may be called concurrently.
type ClickStore struct {
	conn    driver.Conn
	layout  layout
	columns sync.Pool     // of *columns
	within  time.Duration // insertWithin, or less in tests
}

var (
	_ schema.ClickStore  = (*ClickStore)(nil)
	_ schema.ReportStore = (*ClickStore)(nil)
)

// OpenClickStore connects to the servers and brings the schema up to date. The database exists. CodeUnavailable if no server
// answers.
func OpenClickStore(ctx context.Context, cfg Config) (*ClickStore, error) {
	options, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("read ClickHouse DSN: %w", err)
	}
	if err := cfg.trust(options); err != nil {
		return nil, fmt.Errorf("-clickhouse.tls-ca: %w", err)
	}
	conn, err := ch.Open(options)
	if err != nil {
		return nil, fmt.Errorf("read ClickHouse DSN: %w", err)
	}
	c := &ClickStore{conn: conn, layout: layout{Database: options.Auth.Database, Cluster: cfg.Cluster}, within: insertWithin}
	if err = ping(ctx, conn, options.DialTimeout); err == nil {
		err = migrate(ctx, options, c.layout)
	}
	if err != nil {
		err = errors.Join(err, conn.Close())
		return nil, wrap(err, "open database %q at %v", options.Auth.Database, options.Addr)
	}
	return c, nil
}

// ping asks for an answer. By HTTP, nothing but a query shows that a server listens to its connections.
func ping(ctx context.Context, conn driver.Conn, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return conn.Ping(ctx)
}

// Close closes the connections. Calls that come later fail; those under way may fail or succeed.
func (c *ClickStore) Close() error { return c.conn.Close() }

const (
	position = `SELECT max(kafka_next), now('UTC') FROM clicks WHERE kafka_partition = ?`
	// All lanes, and how far their batches reach, at one moment.
	laneMarks = `SELECT incarnation, lane, max(kafka_next), max(seq) FROM clicks WHERE kafka_partition = ?
	GROUP BY incarnation, lane`
	// A batch's last row, found by the key of the table.
	lastRow = `SELECT count() FROM clicks WHERE link_id = ? AND clicked_at = fromUnixTimestamp64Milli(?, 'UTC')
	AND month = ? AND kafka_partition = ? AND kafka_next = ?`
)

const (
	maxRows   = 500_000                // more might not stay one block
	maxSends  = 10                     // of one batch
	sendPause = 200 * time.Millisecond // before a batch that was taken and cannot be seen is sent again
	// insertWithin bounds the time from the check of the position to the insert. The server measures it with its own
	// clock: the process may be suspended in between, together with its timers. In this time a partition must not have
	// as many inserts as the server remembers tokens.
	insertWithin = 30 * time.Second
)

// Position implements schema.ClickStore.
func (c *ClickStore) Position(ctx context.Context, partition int) (schema.Position, error) {
	ctx, cancel := context.WithTimeout(c.reading(ctx), readTimeout)
	defer cancel()
	at := schema.Position{Marks: map[schema.Lane]uint64{}}
	rows, err := c.conn.Query(ctx, laneMarks, partition)
	err = each(rows, err, func() error {
		var lane schema.Lane
		var next int64
		var seq uint64
		err := rows.Scan(&lane.Incarnation, &lane.Number, &next, &seq)
		at.Next = max(at.Next, next)
		at.Marks[lane] = seq
		return err
	})
	return at, wrap(err, "read position of partition %d", partition)
}

// next returns the Next of a partition's position, and the time when an insert at this position expires.
func (c *ClickStore) next(ctx context.Context, partition int) (next int64, expires time.Time, err error) {
	err = c.conn.QueryRow(c.reading(ctx), position, partition).Scan(&next, &expires)
	return next, expires.Add(c.within), err
}

// InsertClicks implements schema.ClickStore.
func (c *ClickStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	err := c.insert(ctx, batch)
	return wrap(err, "insert clicks of partition %d from offset %d", batch.Partition, batch.Base)
}

func (c *ClickStore) insert(ctx context.Context, batch *schema.ClickBatch) error {
	if batch.Len() > maxRows {
		return schema.Errorf(schema.CodeInternal, "%d clicks are more than %d", batch.Len(), maxRows)
	}
	next, expires, err := c.next(ctx, batch.Partition)
	if err != nil {
		return err
	}
	if next != batch.Base {
		return movedOn(next)
	}
	columns := c.fill(batch)
	defer c.columns.Put(columns)
	for lost := range maxSends {
		columns.expire(expires)
		if err := c.send(ctx, batch, columns, c.token(batch, lost)); err != nil {
			return err
		}
		if counted, err := c.holds(ctx, batch); counted || err != nil {
			return err
		}
		if next, expires, err = c.next(ctx, batch.Partition); err != nil {
			return err
		}
		if next != batch.Base {
			return movedOn(next)
		}
		// The server has dropped the block as one that it has, and shows none that follows Base.
		if err := sleep(ctx, sendPause); err != nil {
			return err
		}
	}
	return schema.Errorf(schema.CodeUnavailable, "the server took the batch %d times and does not have it", maxSends)
}

func movedOn(next int64) error {
	return schema.Errorf(schema.CodeConflict, "the partition is at offset %d", next)
}

// token returns what an insert is known by, which of all batches that follow Base lets one in. lost is the number of
// tokens that the server knows though the parts of their inserts were lost when it died. On a cluster a part that is
// not seen may only be late on the replica that was asked: there the token is always the same.
func (c *ClickStore) token(batch *schema.ClickBatch, lost int) string {
	if c.layout.Cluster != "" {
		lost = 0
	}
	return fmt.Sprintf("%d/%d/%d", batch.Partition, batch.Base, lost)
}

// send sends the batch as one block. After an error that is no answer, the insert is ended before send returns, lest it
// succeeds when the position has been read again; the token would see to that, too.
func (c *ClickStore) send(ctx context.Context, batch *schema.ClickBatch, columns *columns, token string) error {
	id := "linkstream-" + rand.Text()
	to, err := c.conn.PrepareBatch(c.inserting(ctx, id, token), insertRows)
	if err == nil {
		if err = columns.appendTo(to, batch); err == nil {
			err = to.Send()
		}
		_ = to.Close() // does nothing after Send
	}
	if err == nil || exceptionCode(err) != 0 {
		return err
	}
	return c.kill(ctx, id, err)
}

// kill ends the insert, if it still runs, and returns cause.
func (c *ClickStore) kill(ctx context.Context, id string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
	defer cancel()
	// On a cluster, the shard's part of it has an id of its own.
	statement := "KILL QUERY " + c.layout.OnCluster() + " WHERE query_id = ? OR initial_query_id = ? SYNC"
	if err := c.conn.Exec(ctx, statement, id, id); err != nil {
		return fmt.Errorf("%w (and it may still succeed: %w)", cause, err)
	}
	return cause
}

// holds reports whether the batch, or one that accounts for the same records, is in the table.
func (c *ClickStore) holds(ctx context.Context, batch *schema.ClickBatch) (bool, error) {
	last := batch.Len() - 1
	var rows uint64
	err := c.conn.QueryRow(c.reading(ctx), lastRow, batch.LinkID[last], batch.ClickedAt[last].UnixMilli(), month(batch),
		batch.Partition, batch.Next).Scan(&rows)
	return rows > 0, err
}
