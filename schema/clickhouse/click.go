package clickhouse

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/schema"
	"linkstream/schema/namebound"
)

const (
	// The tuple is that of the projection: a shorter one would be computed from the rows.
	position = `WITH max((kafka_epoch, kafka_next, kafka_offset)) AS last
	SELECT last.1, last.2, now('UTC') FROM clicks WHERE kafka_partition = ?`
	lastClick = `WITH max((kafka_epoch, kafka_next, kafka_offset, incarnation, lane, seq)) AS last
	SELECT last.1, last.2, last.3, last.4, last.5, last.6 FROM clicks WHERE kafka_partition = ?`
	// The same from log_positions, a projection of earlier releases. It reads all lanes, while lastClick reads the rows of parts
	// that do not have log_ends yet.
	lastLane = `WITH max((kafka_epoch, kafka_next, kafka_offset)) AS last
	SELECT last.1, last.2, last.3, incarnation, lane, max(seq) FROM clicks WHERE kafka_partition = ?
	GROUP BY incarnation, lane ORDER BY last DESC LIMIT 1`
	hasLogPositions = `SELECT countIf(position(create_table_query, 'PROJECTION log_positions ') > 0) > 0 FROM system.tables
	WHERE database = currentDatabase() AND name = ?` // any user may read system.tables
	laneMark = `SELECT max(seq) FROM clicks WHERE incarnation = ? AND lane = ?`
	// The last row of a batch, by the primary key of the table.
	lastRow = `SELECT count() FROM clicks WHERE link_id = ? AND clicked_at = fromUnixTimestamp64Milli(?, 'UTC')
	AND month = ? AND kafka_partition = ? AND kafka_epoch = ? AND kafka_next = ?`
	referrers = `SELECT link_id, toDate(clicked_at) AS day, toString(referrer) AS name FROM clicks
	WHERE link_id IN (?) AND toDate(clicked_at) IN (?) AND name != '' GROUP BY link_id, day, name LIMIT ? BY link_id, day`
)

const (
	maxRows   = 500_000                // of a batch: more could become several blocks
	maxSends  = 10                     // of a batch
	maxKeys   = 100                    // links and days of a query of names
	sendPause = 200 * time.Millisecond // between two sends of a batch
	// insertWithin bounds the time from the check of the position to the insert. The server measures it with its own
	// clock: the process may be suspended in between, together with its timers. In this time a partition must not have
	// as many inserts as the server remembers tokens.
	insertWithin = 30 * time.Second
)

// Position implements schema.ClickStore.
func (c *ClickStore) Position(ctx context.Context, partition int) (at schema.Position, err error) {
	done, err := c.takeTurn(ctx)
	if err != nil {
		return at, wrap(err, "read position of partition %d", partition)
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	query, settings, upgrading := lastClick, projectionSettings("log_ends"), false
	if err = c.conn.QueryRow(ctx, hasLogPositions, c.layout.Rows()).Scan(&upgrading); err != nil {
		return at, wrap(err, "read position of partition %d", partition)
	}
	if upgrading {
		query, settings = lastLane, ch.Settings{}
	}
	last := &at.Last
	err = c.conn.QueryRow(c.readContext(ctx, settings), query, partition).
		Scan(&at.Epoch, &at.Next, &last.Offset, &last.Lane.Incarnation, &last.Lane.Number, &last.Seq)
	if errors.Is(err, sql.ErrNoRows) { // lastLane has a row per lane
		err = nil
	}
	return at, wrap(err, "read position of partition %d", partition)
}

// LaneMark implements schema.ClickStore.
func (c *ClickStore) LaneMark(ctx context.Context, lane schema.Lane) (seq uint64, err error) {
	done, err := c.takeTurn(ctx)
	if err != nil {
		return 0, wrap(err, "read mark of lane %d of %s", lane.Number, lane.Incarnation)
	}
	defer done()
	ctx, cancel := context.WithTimeout(c.readContext(ctx, projectionSettings("lane_positions")), readTimeout)
	defer cancel()
	err = c.conn.QueryRow(ctx, laneMark, string(lane.Incarnation[:]), lane.Number).Scan(&seq)
	return seq, wrap(err, "read mark of lane %d of %s", lane.Number, lane.Incarnation)
}

// admission is what the server allows after a check of the position.
type admission struct {
	expires time.Time // the server rejects the insert later
	month   uint32
}

// check admits an insert of the batch. CodeConflict if the partition is not where the batch begins.
func (c *ClickStore) check(ctx context.Context, batch *schema.ClickBatch) (a admission, err error) {
	var epoch uint32
	var next int64
	var now time.Time
	ctx = c.readContext(ctx, projectionSettings("log_ends"))
	if err = c.conn.QueryRow(ctx, position, batch.Partition).Scan(&epoch, &next, &now); err != nil {
		return a, err
	}
	if epoch != batch.BaseEpoch || next != batch.Base {
		return a, schema.Errorf(schema.CodeConflict, "the partition is at offset %d of epoch %d", next, epoch)
	}
	a.expires = now.Add(c.within)
	a.month, err = insertMonth(batch.Time, now)
	return a, err
}

// loadReferrers is a namebound.Load.
func (c *ClickStore) loadReferrers(ctx context.Context, keys []namebound.Key, each func(namebound.Key, string)) error {
	ctx = ch.Context(ctx, ch.WithSettings(lookupSettings("link_referrers")))
	for some := range slices.Chunk(keys, maxKeys) {
		var links []int64
		var days []string
		for _, key := range some {
			links, days = append(links, key.Link), append(days, time.Unix(key.Day*24*60*60, 0).UTC().Format(time.DateOnly))
		}
		rows, err := c.conn.Query(ctx, referrers, links, days, schema.MaxNames)
		err = forEachRow(rows, err, func() error {
			var key namebound.Key
			var day time.Time
			var name string
			err := rows.Scan(&key.Link, &day, &name)
			key.Day = schema.DayNumber(day)
			each(key, name)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// InsertClicks implements schema.ClickStore.
func (c *ClickStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	done, err := c.takeTurn(ctx)
	if err == nil {
		defer done()
		ctx, cancel := context.WithTimeout(ctx, insertTimeout)
		defer cancel()
		err = c.insert(ctx, batch)
	}
	return wrap(err, "insert clicks of partition %d from offset %d", batch.Partition, batch.Base)
}

func (c *ClickStore) insert(ctx context.Context, batch *schema.ClickBatch) error {
	if batch.Len() > maxRows {
		return schema.Errorf(schema.CodeInternal, "a batch of %d clicks, more than %d", batch.Len(), maxRows)
	}
	if err := batch.CheckEpoch(); err != nil {
		return err
	}
	admitted, err := c.check(ctx, batch)
	if err != nil {
		return err
	}
	columns, err := c.fill(ctx, batch)
	if err != nil {
		return err
	}
	defer c.columns.Put(columns)
	if err := c.insertGaps(ctx, batch); err != nil {
		return err
	}
	for lost := range maxSends {
		columns.admit(admitted)
		if err := c.send(ctx, batch, columns, c.token(batch, lost)); err != nil {
			return err
		}
		if counted, err := c.counted(ctx, batch, admitted.month); counted || err != nil {
			return err
		}
		if admitted, err = c.check(ctx, batch); err != nil {
			return err
		}
		// The server has dropped the block as a duplicate, but has no rows that follow Base.
		if err := sleep(ctx, sendPause); err != nil {
			return err
		}
	}
	return schema.Errorf(schema.CodeUnavailable, "the server accepted the batch %d times and does not have it", maxSends)
}

// token returns the deduplication token of a batch, which is the same for all batches from its Base: also for one that stays
// in a log and one that begins the next epoch. lost is the number of such tokens that the server knows, although it lost
// their parts when it died. On a cluster the token is always the first one, because a part that is missing may be late on
// the replica that was asked. Epoch 0 has the tokens of releases without epochs.
func (c *ClickStore) token(batch *schema.ClickBatch, lost int) string {
	if c.layout.Cluster != "" {
		lost = 0
	}
	if batch.BaseEpoch == 0 {
		return fmt.Sprintf("%d/%d/%d", batch.Partition, batch.Base, lost)
	}
	return fmt.Sprintf("%d/%d.%d/%d", batch.Partition, batch.BaseEpoch, batch.Base, lost)
}

// send sends the batch as one block. After an error that is not the server's answer, send kills the insert before it
// returns, so that it cannot succeed after the position was read again. The token alone would prevent that too.
func (c *ClickStore) send(ctx context.Context, batch *schema.ClickBatch, columns *columns, token string) error {
	id := "linkstream-" + rand.Text()
	to, err := c.conn.PrepareBatch(c.insertContext(ctx, id, token), insertRows)
	if err == nil {
		if err = columns.appendTo(to, batch); err == nil {
			err = to.Send()
		}
		_ = to.Close() // has no effect after Send
	}
	if err == nil || exceptionCode(err) != 0 {
		return err
	}
	return c.kill(ctx, id, err)
}

// kill kills the insert, if it still runs, and returns cause.
func (c *ClickStore) kill(ctx context.Context, id string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
	defer cancel()
	const running = " WHERE query_id = ? OR initial_query_id = ? SYNC"
	err := c.conn.Exec(ctx, "KILL QUERY"+running, id, id)
	if err == nil && c.layout.Cluster != "" {
		// Another server may have the query, and a shard has it by another ID. This needs Keeper.
		err = c.conn.Exec(ctx, "KILL QUERY "+c.layout.OnCluster()+running, id, id)
	}
	if err != nil {
		return fmt.Errorf("%w (the insert may still succeed: %w)", cause, err)
	}
	return cause
}

// counted reports whether the table has the batch, or one of the same records.
func (c *ClickStore) counted(ctx context.Context, batch *schema.ClickBatch, month uint32) (bool, error) {
	last := batch.Len() - 1
	var rows uint64
	err := c.conn.QueryRow(c.readContext(ctx, rowSettings()), lastRow, batch.LinkID[last], batch.ClickedAt[last].UnixMilli(), month,
		batch.Partition, batch.Epoch, batch.Next).Scan(&rows)
	return rows > 0, err
}
