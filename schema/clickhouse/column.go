package clickhouse

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
	"linkstream/schema/namebound"
)

// insertColumns are the columns of an insert, in the order of appendTo. Without them, clickhouse-go over HTTP would
// query them before each insert, with the query ID of the insert.
var insertColumns = func() []ch.ColumnNameAndType {
	all := []ch.ColumnNameAndType{
		{Name: "link_id", Type: "Int64"}, {Name: "clicked_at", Type: "DateTime64(3, 'UTC')"},
		{Name: "kafka_partition", Type: "Int32"}, {Name: "kafka_epoch", Type: "UInt32"},
		{Name: "kafka_offset", Type: "Int64"}, {Name: "kafka_next", Type: "Int64"},
		{Name: "incarnation", Type: "FixedString(16)"}, {Name: "lane", Type: "UInt32"}, {Name: "seq", Type: "UInt64"},
		{Name: "month", Type: "UInt32"}, {Name: "insert_before", Type: "DateTime('UTC')"},
		{Name: "account_id", Type: "Int64"}, {Name: "visitor", Type: "UInt64"},
	}
	for _, by := range schema.Dimensions() {
		all = append(all, ch.ColumnNameAndType{Name: string(by), Type: "LowCardinality(String)"})
	}
	return all
}()

var insertRows = func() string {
	names := make([]string, len(insertColumns))
	for i, column := range insertColumns {
		names[i] = column.Name
	}
	return "INSERT INTO clicks (" + strings.Join(names, ", ") + ")"
}()

// columns are those columns of an insert that a batch does not have in the form that is sent. Their memory is used
// again.
type columns struct {
	names []dictionary // by dimension

	encoded      []byte // dictionaries, in their order in an insert
	bounded      namebound.Memory
	partition    []int32
	epoch        []uint32
	next         []int64
	incarnation  [][]byte
	lane         []uint32
	month        []uint32
	insertBefore []int64 // Unix time; 0: never
}

// fill returns the columns of a batch, which borrow from it.
func (c *ClickStore) fill(ctx context.Context, b *schema.ClickBatch) (*columns, error) {
	cs, ok := c.columns.Get().(*columns)
	if !ok {
		cs = new(columns)
	}
	b, err := c.names.Apply(ctx, b, &cs.bounded)
	if err != nil {
		return nil, err
	}
	cs.fill(b)
	return cs, nil
}

func (c *columns) fill(b *schema.ClickBatch) {
	n := b.Len()
	if c.names == nil {
		c.names = make([]dictionary, len(dimensions))
	}
	for i, by := range dimensions {
		fillNames(&c.names[i], *b.Names(by))
	}
	c.incarnation, c.lane = resized(c.incarnation, n), resized(c.lane, n)
	c.partition, c.next, c.month = resized(c.partition, n), resized(c.next, n), resized(c.month, n)[:n]
	c.insertBefore = resized(c.insertBefore, n)[:n]
	clear(c.insertBefore)
	c.epoch = resized(c.epoch, n)
	for i := range n {
		c.incarnation, c.lane = append(c.incarnation, b.Lane[i].Incarnation[:]), append(c.lane, b.Lane[i].Number)
		c.partition, c.next = append(c.partition, int32(b.Partition)), append(c.next, 0)
		c.epoch = append(c.epoch, b.Epoch)
	}
	c.next[n-1] = b.Next
}

// admit sets what depends on the last check of the position.
func (c *columns) admit(a admission) {
	for i := range c.month {
		c.month[i] = a.month
	}
	c.insertBefore[len(c.insertBefore)-1] = a.expires.Unix()
}

// resized returns an empty column with capacity for n values.
func resized[T any](column []T, n int) []T { return slices.Grow(column[:0], n) }

func fillNames(column *dictionary, names []string) {
	column.reset(len(names))
	for _, name := range names {
		column.add(name)
	}
}

// appendTo appends the batch in the order of insertColumns.
func (c *columns) appendTo(to driver.Batch, b *schema.ClickBatch) error {
	values := []any{
		b.LinkID, b.ClickedAt, c.partition, c.epoch, b.Offset, c.next, c.incarnation, c.lane, b.Seq, c.month,
		c.insertBefore, b.AccountID, b.Visitor,
	}
	for i := range c.names {
		values = append(values, &c.names[i])
	}
	c.encoded = c.encoded[:0]
	for _, column := range values {
		if names, ok := column.(*dictionary); ok {
			c.encoded = names.appendTo(c.encoded)
		}
	}
	encoded, columns := proto.NewReader(bytes.NewReader(c.encoded)), to.Columns()
	for i, column := range values {
		if _, ok := column.(*dictionary); ok {
			if err := columns[i].Decode(encoded, b.Len()); err != nil {
				return err
			}
		} else if err := to.Column(i).Append(column); err != nil {
			return err
		}
	}
	return nil
}
