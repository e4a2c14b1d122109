//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// revision is that of the native protocol, which has no document: its description is ClickHouse's source. Client and
// server are expected to speak the same here.
const revision = proto.DBMS_TCP_PROTOCOL_VERSION

// serveNative serves connections until l is closed. Then it ends those that are open.
func (e *engine) serveNative(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		open.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			r := bufio.NewReaderSize(c, 1<<16)
			n := &nativeConn{engine: e, conn: c, buffered: r, r: chproto.NewReader(r)}
			_ = n.serve(ctx) // that the client went away, or does not speak the protocol
		})
	}
}

// nativeConn is a client's connection. The client sends one query at a time.
type nativeConn struct {
	engine     *engine
	conn       net.Conn
	buffered   *bufio.Reader // what r reads
	r          *chproto.Reader
	w          chproto.Buffer // what flush sends
	database   string
	compressed bool // the blocks of the present query
}

func (n *nativeConn) serve(ctx context.Context) error {
	if err := n.greet(); err != nil {
		return err
	}
	for {
		code, err := n.r.UVarInt()
		if err != nil {
			return err
		}
		switch chproto.ClientCode(code) {
		case chproto.ClientCodePing:
			chproto.ServerCodePong.Encode(&n.w)
		case chproto.ClientCodeQuery:
			if err := n.answer(ctx); err != nil {
				return err
			}
		case chproto.ClientCodeCancel: // of a query that has been answered
		case chproto.ClientTablesStatusRequest:
			if err := n.answerTablesStatus(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unexpected packet %d", code)
		}
		if err := n.flush(); err != nil {
			return err
		}
	}
}

func (n *nativeConn) greet() error {
	code, err := n.r.UVarInt()
	if err != nil {
		return err
	}
	if chproto.ClientCode(code) != chproto.ClientCodeHello {
		return fmt.Errorf("packet %d in the place of hello", code)
	}
	var hello chproto.ClientHello
	if err := hello.Decode(n.r); err != nil {
		return err
	}
	n.database = hello.Database
	n.engine.version.EncodeAware(&n.w, revision)
	if err := n.flush(); err != nil {
		return err
	}
	_, err = n.r.Str() // the quota key, which follows the greeting
	return err
}

// answer reads a query and writes its result or its exception. Other errors end the connection.
func (n *nativeConn) answer(ctx context.Context) error {
	q, err := n.readQuery()
	if err != nil {
		return err
	}
	n.compressed = q.Compression == chproto.CompressionEnabled
	err = n.execute(ctx, q)
	if x, ok := errors.AsType[*exception](err); ok {
		n.w.Reset()
		chproto.ServerCodeException.Encode(&n.w)
		answer := chproto.Exception{Code: chproto.Error(x.code), Name: "DB::Exception", Message: x.text}
		answer.EncodeAware(&n.w, revision)
		return nil
	}
	if err != nil {
		return err
	}
	chproto.ServerCodeEndOfStream.Encode(&n.w)
	return nil
}

func (n *nativeConn) flush() error {
	_, err := n.conn.Write(n.w.Buf)
	n.w.Reset()
	return err
}

// run runs r. Meanwhile nothing is due from the client: what comes is its wish to cancel the query, or its end.
func (n *nativeConn) run(ctx context.Context, r *request) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if _, err := n.buffered.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel()
		}
	}()
	res, err := n.engine.run(ctx, r)
	_ = n.conn.SetReadDeadline(time.Unix(1, 0)) // ends the peek; fails on a closed connection, which has ended it
	<-watched
	_ = n.conn.SetReadDeadline(time.Time{})
	return res, err
}

// readBlocks reads blocks until the empty one and appends them to native in protocol revision 0; nil skips them.
func (n *nativeConn) readBlocks(native *chproto.Buffer) error {
	for {
		b, err := n.readBlock()
		if err != nil {
			return err
		}
		if len(b.Columns) == 0 {
			return nil
		}
		if b.Rows() > 0 && native != nil {
			if err := b.Encode(native, 0); err != nil {
				return err
			}
		}
	}
}

func (n *nativeConn) readBlock() (*proto.Block, error) {
	code, err := n.r.UVarInt()
	if err != nil {
		return nil, err
	}
	if code := chproto.ClientCode(code); code != chproto.ClientCodeData && code != clientCodeScalar {
		return nil, fmt.Errorf("packet %d in the place of data", code)
	}
	if _, err := n.r.Str(); err != nil { // the name of an external table or of a scalar
		return nil, err
	}
	if n.compressed {
		n.r.EnableCompression()
		defer n.r.DisableCompression()
	}
	b := n.engine.newBlock()
	return b, b.Decode(n.r, revision)
}

// writeBlock writes a packet of data.
func (n *nativeConn) writeBlock(b *proto.Block) error {
	var encoded chproto.Buffer
	if err := b.Encode(&encoded, revision); err != nil {
		return err
	}
	return n.writeEncoded(encoded.Buf)
}

func (n *nativeConn) writeEncoded(block []byte) (err error) {
	chproto.ServerCodeData.Encode(&n.w)
	n.w.PutString("") // the name of an external table
	if n.compressed {
		if block, err = frames(block, compress.LZ4); err != nil {
			return err
		}
	}
	n.w.PutRaw(block)
	return nil
}
