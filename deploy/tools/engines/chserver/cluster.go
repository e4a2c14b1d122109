//go:build linux

package main

import (
	"fmt"
	"regexp"
	"strings"

	chproto "github.com/ClickHouse/ch-go/proto"
)

// An engine that is a node of a cluster has tables of engine Distributed. It is a client of the other nodes then, and
// they are its servers: this file has what ClickHouse's nodes say to each other and other clients do not.

// remoteServers returns the part of the configuration that defines the cluster, "" if there are no shards.
func remoteServers(shards string) string {
	if shards == "" {
		return ""
	}
	var all strings.Builder
	for addr := range strings.SplitSeq(shards, ",") {
		host, port, _ := strings.Cut(addr, ":")
		fmt.Fprintf(&all, "<shard><internal_replication>true</internal_replication>"+
			"<replica><host>%s</host><port>%s</port></replica></shard>", host, port)
	}
	return "<remote_servers><shards>" + all.String() + "</shards></remote_servers>"
}

// clientCodeScalar begins a packet like one of data, with a value that the query refers to. The queries of tests refer
// to none.
const clientCodeScalar chproto.ClientCode = 7

// readQuery reads a query. chproto refuses those of nodes, whose first client is not one of TCP but the library itself.
func (n *nativeConn) readQuery() (*chproto.Query, error) {
	var q chproto.Query
	if !n.engine.node {
		return &q, q.DecodeAware(n.r, revision)
	}
	f := fields{r: n.r}
	q.ID = f.str()
	f.readClientInfo(&q.Info)
	for f.err == nil {
		var s chproto.Setting
		f.err = s.Decode(n.r)
		if s.Key == "" {
			break
		}
		q.Settings = append(q.Settings, s)
	}
	q.Secret = f.str()
	q.Stage, q.Compression = chproto.Stage(f.number()), chproto.Compression(f.number())
	q.Body = f.str()
	for f.err == nil {
		var p chproto.Parameter
		f.err = p.Decode(n.r)
		if p.Key == "" {
			break
		}
		q.Parameters = append(q.Parameters, p)
	}
	return &q, f.err
}

// fields reads fields one after the other, and nothing after an error.
type fields struct {
	r   *chproto.Reader
	err error
}

func (f *fields) str() string    { return field(f, f.r.Str) }
func (f *fields) octet() byte    { return field(f, f.r.UInt8) }
func (f *fields) number() uint64 { return field(f, f.r.UVarInt) }
func (f *fields) skip(bytes int) { field(f, func() ([]byte, error) { return f.r.ReadRaw(bytes) }) }

func field[T any](f *fields, read func() (T, error)) (value T) {
	if f.err == nil {
		value, f.err = read()
	}
	return value
}

// readClientInfo reads ClickHouse's ClientInfo. Of its fields only the kind of the query is used.
func (f *fields) readClientInfo(info *chproto.ClientInfo) {
	const hasTrace, traceLen = 1, 16 + 8
	info.Query = chproto.ClientQueryKind(f.octet())
	for range 3 { // the first query's user, ID and address
		f.str()
	}
	f.skip(8) // its time
	info.Interface = chproto.Interface(f.octet())
	if info.Interface == chproto.InterfaceTCP {
		for range 3 { // the client's user, host and name
			f.str()
		}
		for range 3 { // and version
			f.number()
		}
	}
	f.str()    // quota key
	f.number() // distributed depth
	if info.Interface == chproto.InterfaceTCP {
		f.number() // patch version
	}
	if f.octet() == hasTrace {
		f.skip(traceLen)
		f.str()
		f.octet()
	}
	for range 3 { // parallel replicas
		f.number()
	}
}

// answerTablesStatus answers whether tables are there, which a node asks before it sends a query about them. All of
// them are, and none is a replica that could lag.
func (n *nativeConn) answerTablesStatus() error {
	count, err := n.r.UVarInt()
	if err != nil {
		return err
	}
	chproto.ServerCodeTablesStatus.Encode(&n.w)
	n.w.PutUVarInt(count)
	for range count {
		for range 2 { // database and table
			name, err := n.r.Str()
			if err != nil {
				return err
			}
			n.w.PutString(name)
		}
		n.w.PutBool(false)
	}
	return nil
}

// distributedPattern matches a table to read whose engine may be Distributed.
var distributedPattern = regexp.MustCompile(`\bFROM clicks\b`)

// distributed returns a query that aggregates rows of other nodes here. ClickHouse's nodes send each other states of
// aggregate functions, for which the library has no interface.
func distributed(sql []byte) []byte {
	return distributedPattern.ReplaceAll(sql, []byte("FROM (SELECT * FROM clicks) AS clicks"))
}
