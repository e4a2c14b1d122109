package clickhouse

import (
	"slices"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
)

// sent are the columns of an insert, in the order of appendTo. By HTTP, clickhouse-go would else ask the server for
// them before each insert, as a query with the ID that the insert is to have.
var sent = []ch.ColumnNameAndType{
	{Name: "link_id", Type: "Int64"}, {Name: "clicked_at", Type: "DateTime64(3, 'UTC')"},
	{Name: "device", Type: "LowCardinality(String)"}, {Name: "browser", Type: "LowCardinality(String)"},
	{Name: "kafka_partition", Type: "Int32"}, {Name: "kafka_offset", Type: "Int64"}, {Name: "kafka_next", Type: "Int64"},
	{Name: "incarnation", Type: "FixedString(16)"}, {Name: "lane", Type: "UInt32"}, {Name: "seq", Type: "UInt64"},
	{Name: "month", Type: "UInt32"}, {Name: "insert_before", Type: "DateTime('UTC')"},
	{Name: "account_id", Type: "Int64"},
	{Name: "referrer", Type: "LowCardinality(String)"}, {Name: "country", Type: "LowCardinality(String)"},
}

var insertRows = func() string {
	names := make([]string, len(sent))
	for i, column := range sent {
		names[i] = column.Name
	}
	return "INSERT INTO clicks (" + strings.Join(names, ", ") + ")"
}()

// maxNames bounds the names that columns keeps from one batch to the next.
const maxNames = 10_000

// columns are those columns of the table that a batch does not have as they are sent. Their memory is used again.
type columns struct {
	device, browser, referrer, country []any
	partition                          []int32
	next                               []int64
	incarnation                        [][]byte
	lane                               []uint32
	month                              []uint32
	insertBefore                       []int64 // Unix time; 0: never

	// names holds each device, browser, referrer and country as clickhouse-go takes the values of a column of
	// LowCardinality: in an interface. To put a string into one allocates, and there are few different ones.
	names map[string]any
}

// fill returns the columns of a batch, which borrow from it.
func (c *ClickStore) fill(b *schema.ClickBatch) *columns {
	cs, ok := c.columns.Get().(*columns)
	if !ok {
		cs = &columns{names: map[string]any{}}
	}
	cs.fill(b)
	return cs
}

func (c *columns) fill(b *schema.ClickBatch) {
	if len(c.names) > maxNames {
		clear(c.names)
	}
	n := b.Len()
	c.device, c.browser = emptied(c.device, n), emptied(c.browser, n)
	c.referrer, c.country = emptied(c.referrer, n), emptied(c.country, n)
	c.incarnation, c.lane = emptied(c.incarnation, n), emptied(c.lane, n)
	c.partition, c.next, c.month = emptied(c.partition, n), emptied(c.next, n), emptied(c.month, n)
	c.insertBefore = emptied(c.insertBefore, n)[:n]
	clear(c.insertBefore)
	in := month(b)
	for i := range n {
		c.device, c.browser = c.appendName(c.device, string(b.Device[i])), c.appendName(c.browser, b.Browser[i])
		c.referrer, c.country = c.appendName(c.referrer, b.Referrer[i]), c.appendName(c.country, b.Country[i])
		c.incarnation, c.lane = append(c.incarnation, b.Lane[i].Incarnation[:]), append(c.lane, b.Lane[i].Number)
		c.partition, c.next, c.month = append(c.partition, int32(b.Partition)), append(c.next, 0), append(c.month, in)
	}
	c.next[n-1] = b.Next
}

// expire makes the server refuse the rows after the time at.
func (c *columns) expire(at time.Time) { c.insertBefore[len(c.insertBefore)-1] = at.Unix() }

// emptied returns column without values and with room for n.
func emptied[T any](column []T, n int) []T { return slices.Grow(column[:0], n) }

// appendName appends a name, which often is the one before.
func (c *columns) appendName(column []any, name string) []any {
	if n := len(column); n > 0 && column[n-1] == any(name) {
		return append(column, column[n-1])
	}
	box, ok := c.names[name]
	if !ok {
		box = name
		c.names[name] = box
	}
	return append(column, box)
}

// appendTo appends the batch in the order of sent.
func (c *columns) appendTo(to driver.Batch, b *schema.ClickBatch) error {
	for i, column := range []any{
		b.LinkID, b.ClickedAt, c.device, c.browser, c.partition, b.Offset, c.next, c.incarnation, c.lane, b.Seq, c.month,
		c.insertBefore, b.AccountID, c.referrer, c.country,
	} {
		if err := to.Column(i).Append(column); err != nil {
			return err
		}
	}
	return nil
}

// month returns the batch's month as 202611.
func month(b *schema.ClickBatch) uint32 {
	at := b.Time.UTC()
	return uint32(at.Year()*100 + int(at.Month()))
}
