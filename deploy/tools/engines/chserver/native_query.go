//go:build linux

package main

import (
	"context"
	"strings"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// execute runs a query and writes the blocks of its result. Nothing of them has been sent when it returns.
func (n *nativeConn) execute(ctx context.Context, q *chproto.Query) error {
	ctx, end := n.engine.named.begin(ctx, q.ID, q.Info.InitialQueryID)
	defer end()
	if err := n.readBlocks(nil); err != nil { // external tables, of which only the end is expected
		return err
	}
	r := request{sql: []byte(q.Body), format: "Native", database: n.database, id: q.ID}
	if n.engine.node && q.Info.Query != chproto.ClientQuerySecondary {
		r.sql = distributed(r.sql)
	}
	for _, s := range q.Settings {
		r.set(s.Key, s.Value)
	}
	for _, p := range q.Parameters {
		r.set("param_"+p.Key, unquote(p.Value))
	}
	if into := parseInsert(r.sql); into != nil {
		return n.insert(ctx, r, into)
	}
	res, err := n.run(ctx, &r)
	if err != nil {
		return err
	}
	if len(res.data) == 0 {
		return n.writeNoRows(ctx, r)
	}
	if err := n.engine.eachBlock(res.data, n.writeBlock); err != nil {
		return asException(err)
	}
	return nil
}

// insert tells the client the columns, reads the rows and inserts them.
func (n *nativeConn) insert(ctx context.Context, r request, into *insert) error {
	// Without the insert's id and settings, which are new with each one, this can use an idle session.
	columns := request{database: r.database}
	if err := n.writeColumns(ctx, columns, into.selection()); err != nil {
		return err
	}
	if err := n.flush(); err != nil {
		return err
	}
	var rows chproto.Buffer
	stop := context.AfterFunc(ctx, func() { _ = n.conn.SetReadDeadline(time.Unix(1, 0)) }) // fails on a closed connection
	err := n.readBlocks(&rows)
	stop()
	if err != nil || len(rows.Buf) == 0 {
		return err
	}
	r.rows, r.sql = rows.Buf, []byte(into.head+into.table+into.columns+into.settings+" FORMAT Native")
	_, err = n.run(ctx, &r)
	return err
}

// writeNoRows writes the result of a query that returned none: if it is one that could have, a block that has columns.
func (n *nativeConn) writeNoRows(ctx context.Context, r request) error {
	query := strings.TrimLeft(string(r.sql), " \t\r\n(")
	switch strings.ToUpper(query[:min(4, len(query))]) {
	case "SELE", "WITH":
		return n.writeColumns(ctx, r, strings.TrimRight(string(r.sql), "; \t\r\n"))
	case "SHOW", "DESC", "EXPL", "EXIS":
		return n.writeBlock(proto.NewBlock())
	}
	return nil
}

// writeColumns writes the block without rows that has the columns of the query. proto.Block cannot: it would write the
// version of a dictionary into a column of LowCardinality that is empty.
func (n *nativeConn) writeColumns(ctx context.Context, r request, query string) error {
	r.sql, r.format = []byte("DESCRIBE ("+query+")"), "Native"
	res, err := n.engine.run(ctx, &r)
	if err != nil {
		return err
	}
	var columns chproto.Buffer
	count := 0
	err = n.engine.eachBlock(res.data, func(b *proto.Block) error {
		for i := range b.Rows() {
			columns.PutString(b.Columns[0].Row(i, false).(string)) // name
			columns.PutString(b.Columns[1].Row(i, false).(string)) // type
			columns.PutBool(false)                                 // no serialization of its own
			count++
		}
		return nil
	})
	if err != nil {
		return asException(err)
	}
	var block chproto.Buffer
	chproto.Block{Info: chproto.BlockInfo{BucketNum: -1}, Columns: count}.EncodeAware(&block, revision)
	block.PutRaw(columns.Buf)
	return n.writeEncoded(block.Buf)
}
