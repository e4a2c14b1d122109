package clickhouse

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/schema"
	"linkstream/schema/namebound"
)

const (
	// lastRow is the last row of a partition's batches: the greatest by kafka_epoch, then by kafka_next.
	lastRow      = `maxIf((kafka_epoch, kafka_next, kafka_offset, incarnation, lane, seq), kafka_next > 0)`
	lastPosition = `WITH ` + lastRow + ` AS last
	SELECT last.1, last.2, last.3, last.4, last.5, last.6, now('UTC') FROM clicks WHERE kafka_partition = ?`
	// Its rows are of more lanes than these: of each incarnation all of the numbers.
	laneMarks = `SELECT incarnation, lane, max(seq) FROM clicks WHERE incarnation IN (?) AND lane IN (?) GROUP BY ` +
		`incarnation, lane`
	// The last row of a batch, by the primary key of the table.
	rowOfBatch = `SELECT count() FROM clicks WHERE link_id = ? AND clicked_at = fromUnixTimestamp64Milli(?, 'UTC')
	AND month = ? AND kafka_partition = ? AND kafka_epoch = ? AND kafka_next = ?`
)

var combinations = `SELECT account_id, link_id, toDate(clicked_at) AS day, [toString(` +
	strings.Join(columnsOf(dimensions...), "), toString(") + `)]
	FROM clicks WHERE account_id IN (?) AND toDate(clicked_at) IN (?) AND link_id IN (?)
	GROUP BY account_id, day, link_id, ` + allNames

const (
	maxRows   = 500_000                // of a batch: more could become several blocks
	maxSends  = 10                     // of a batch
	maxKeys   = 10                     // links and days of a query of names
	maxLanes  = 1000                   // of a query of marks
	sendPause = 200 * time.Millisecond // between two sends of a batch
	// insertWithin bounds the time from the check of the position to the insert. The server measures it with its own
	// clock: the process may be suspended in between, together with its timers. In this time a partition must not have
	// as many inserts as the server remembers tokens.
	insertWithin = 30 * time.Second
)

// Position implements schema.PositionStore.
func (c *ClickStore) Position(ctx context.Context, partition int) (at schema.Position, err error) {
	done, err := c.takeTurn(ctx)
	if err != nil {
		return at, wrap(err, "read position of partition %d", partition)
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	at, _, err = c.position(ctx, partition)
	return at, wrap(err, "read position of partition %d", partition)
}

// position returns a partition's position and the server's time.
func (c *ClickStore) position(ctx context.Context, partition int) (at schema.Position, now time.Time, err error) {
	last := &at.Last
	err = c.conn.QueryRow(c.readContext(ctx, lookupSettings("log_ends")), lastPosition, partition).
		Scan(&at.Epoch, &at.Next, &last.Offset, &last.Lane.Incarnation, &last.Lane.Number, &last.Seq, &now)
	return at, now, err
}

// LaneMarks implements schema.ClickStore.
func (c *ClickStore) LaneMarks(ctx context.Context, lanes []schema.Lane) (marks []uint64, err error) {
	done, err := c.takeTurn(ctx)
	if err != nil {
		return nil, wrap(err, "read marks of %d lanes", len(lanes))
	}
	defer done()
	known := make(map[schema.Lane]uint64)
	for some := range slices.Chunk(lanes, maxLanes) {
		if err := c.readMarks(ctx, some, known); err != nil {
			return nil, wrap(err, "read marks of %d lanes", len(lanes))
		}
	}
	for _, lane := range lanes {
		marks = append(marks, known[lane])
	}
	return marks, nil
}

// readMarks adds the marks of lanes, and perhaps those of some others.
func (c *ClickStore) readMarks(ctx context.Context, lanes []schema.Lane, marks map[schema.Lane]uint64) error {
	ctx, cancel := context.WithTimeout(c.readContext(ctx, lookupSettings("lane_marks")), readTimeout)
	defer cancel()
	incarnations, numbers := make(map[string]bool), make(map[uint32]bool)
	for _, lane := range lanes {
		incarnations[string(lane.Incarnation[:])], numbers[lane.Number] = true, true
	}
	rows, err := c.conn.Query(ctx, laneMarks, slices.Collect(maps.Keys(incarnations)), slices.Collect(maps.Keys(numbers)))
	return forEachRow(rows, err, func() error {
		var lane schema.Lane
		var mark uint64
		err := rows.Scan(&lane.Incarnation, &lane.Number, &mark)
		marks[lane] = mark
		return err
	})
}

// admission is what the server allows after a check of the position.
type admission struct {
	expires time.Time // the server rejects the insert later
	month   uint32
}

// check admits an insert of the batch. CodeConflict if the partition is not where the batch begins.
func (c *ClickStore) check(ctx context.Context, batch *schema.ClickBatch) (a admission, err error) {
	at, now, err := c.position(ctx, batch.Partition)
	if err != nil {
		return a, err
	}
	if at.Epoch != batch.BaseEpoch || at.Next != batch.Base {
		return a, schema.Errorf(schema.CodeConflict, "the partition is at offset %d of epoch %d", at.Next, at.Epoch)
	}
	a.expires = now.Add(c.within)
	a.month, err = insertMonth(batch.Time, now)
	return a, err
}

// loadNames is a namebound.Load.
func (c *ClickStore) loadNames(
	ctx context.Context, keys []namebound.Key, each func(namebound.Key, int64, []string),
) error {
	ctx = ch.Context(ctx, ch.WithSettings(lookupSettings("dimensions")))
	for some := range slices.Chunk(keys, maxKeys) {
		var accounts, links []int64
		var days []string
		for _, key := range some {
			accounts, links = append(accounts, key.Account), append(links, key.Link)
			days = append(days, time.Unix(key.Day*24*60*60, 0).UTC().Format(time.DateOnly))
		}
		rows, err := c.conn.Query(ctx, combinations, accounts, days, links)
		err = forEachRow(rows, err, func() error {
			var key namebound.Key
			var day time.Time
			var names []string
			err := rows.Scan(&key.Account, &key.Link, &day, &names)
			key.Day = schema.DayNumber(day)
			each(key, namebound.AllDay, names)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// InsertClicks implements schema.PositionStore.
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

// token returns the deduplication token of a batch, which is the same for all batches from its Base: also for one that
// stays in a log and one that begins the next epoch. lost is the number of such tokens that the server knows, although
// it lost their parts when it died. On a cluster the token is always the first one, because a part that is missing may
// be late on the replica that was asked.
func (c *ClickStore) token(batch *schema.ClickBatch, lost int) string {
	if c.layout.Cluster != "" {
		lost = 0
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
	err := c.conn.QueryRow(c.readContext(ctx, rowSettings()), rowOfBatch, batch.LinkID[last],
		batch.ClickedAt[last].UnixMilli(), month,
		batch.Partition, batch.Epoch, batch.Next).Scan(&rows)
	return rows > 0, err
}
