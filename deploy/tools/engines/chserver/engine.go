//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
	"golang.org/x/sys/unix"
)

// tagSetting is the setting by which a query is found in the list of those that run. It has no other effect.
const tagSetting = "log_comment"

// killAgain is how often a query is killed that is not in the list yet or is still stopping.
const killAgain = 50 * time.Millisecond

// The engine's configuration is a file in the folder of its data. BACKUP writes to the folder "backups" beside that
// one.
const (
	configName   = "config.xml"
	usersName    = "users.xml"
	engineConfig = "<clickhouse><backups><allowed_path>%s/</allowed_path></backups>%s%s</clickhouse>\n"
)

// engine runs queries. It is safe for concurrent use.
type engine struct {
	lib     *library
	data    string
	node    bool  // of a cluster
	keep    *conn // keeps the engine up between queries
	version chproto.ServerHello
	zone    *time.Location
	idle    sessions
	named   named
	unnamed atomic.Int64 // sessions for queries to which the client gave no id

	running sync.RWMutex // read-locked by each query that runs
	closed  bool
}

func openEngine(lib *library, cfg config) (e *engine, err error) {
	data, err := filepath.Abs(cfg.data)
	if err != nil {
		return nil, fmt.Errorf("open engine: %w", err)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("open engine: %w", err)
	}
	users, err := writeUsers(filepath.Join(data, usersName), cfg.grants)
	if err != nil {
		return nil, fmt.Errorf("open engine: %w", err)
	}
	content := fmt.Sprintf(engineConfig, filepath.Join(filepath.Dir(data), "backups"), users, remoteServers(cfg.shards))
	if err := os.WriteFile(filepath.Join(data, configName), []byte(content), 0o600); err != nil {
		return nil, fmt.Errorf("open engine: %w", err)
	}
	e = &engine{lib: lib, data: data, node: cfg.shards != ""}
	if e.keep, err = lib.dial(data); err != nil {
		return nil, err
	}
	about, err := e.keep.query([]byte("SELECT version(), timezone()"), "TSVRaw")
	if err != nil {
		return nil, fmt.Errorf("open engine in %q: %w", data, err)
	}
	version, zone, _ := strings.Cut(strings.TrimSpace(string(about.data)), "\t")
	e.version = chproto.ServerHello{Name: "ClickHouse", DisplayName: "chserver", Revision: revision, Timezone: zone}
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &e.version.Major, &e.version.Minor, &e.version.Patch); err != nil {
		return nil, fmt.Errorf("read version %q of engine: %w", version, err)
	}
	if e.zone, err = time.LoadLocation(zone); err != nil {
		return nil, fmt.Errorf("read time zone of engine: %w", err)
	}
	return e, nil
}

// writeUsers writes the file about the engine's user, who has these grants, and returns the part of the configuration
// that names it: "" if the user may do everything. The engine can be connected to as the user default only, and has
// nowhere to keep users that CREATE USER makes.
func writeUsers(path, grants string) (config string, err error) {
	if grants == "" {
		return "", nil
	}
	var queries strings.Builder
	for grant := range strings.SplitSeq(grants, ";") {
		queries.WriteString("<query>")
		if err := xml.EscapeText(&queries, []byte(strings.TrimSpace(grant))); err != nil {
			return "", err
		}
		queries.WriteString("</query>")
	}
	content := "<clickhouse><profiles><default/></profiles><quotas><default/></quotas>" +
		"<users><default><password/><networks><ip>::/0</ip></networks>" +
		"<profile>default</profile><quota>default</quota><grants>" + queries.String() +
		"</grants></default></users></clickhouse>\n"
	return "<user_directories><users_xml><path>" + path + "</path></users_xml></user_directories>",
		os.WriteFile(path, []byte(content), 0o600)
}

// close waits for the queries that run and stops the engine.
func (e *engine) close() {
	e.running.Lock()
	defer e.running.Unlock()
	e.closed = true
	e.idle.close()
	e.keep.close()
}

// request is a query with all that a protocol says around it.
type request struct {
	sql      []byte
	rows     []byte // of an INSERT that parseInsert knows, in the statement's format
	format   string // of the result, where sql names none
	database string
	id       string // that the client gave it, perhaps none
	settings []setting
}

type setting struct{ name, value string }

func (r *request) set(name, value string) {
	if name != tagSetting {
		r.settings = append(r.settings, setting{name, value})
	}
}

// run executes r in a session that no other request has meanwhile. When ctx ends first, the query is killed and returns
// what it then returns.
func (e *engine) run(ctx context.Context, r *request) (result, error) {
	if killPattern.Match(r.sql) {
		e.named.kill(ctx, r.sql)
	}
	if ctx.Err() != nil {
		return result{}, newException("Code: 394. DB::Exception: Query was cancelled")
	}
	e.running.RLock()
	defer e.running.RUnlock()
	if e.closed {
		return result{}, errors.New("engine is closed")
	}
	c, err := e.open(r)
	if err != nil {
		return result{}, err
	}
	last := true // query of the session
	defer func() {
		if last {
			c.close()
		} else {
			e.idle.put(c)
		}
	}()
	sql := withTags(r.sql)
	if r.rows != nil {
		// The engine ends rows that stand in the statement at the first empty line, be they text or not.
		file, err := inMemory(r.rows)
		if err != nil {
			return result{}, err
		}
		defer file.Close()
		sql = parseInsert(r.sql).from(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	}
	done, killed := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		e.kill(c.tag, done)
		close(killed)
	})
	res, err := c.query(sql, r.format)
	close(done)
	if !stop() {
		<-killed // its connection, too, is closed before the engine is
		return res, err
	}
	last = err != nil || !r.lasting()
	return res, err
}

// kill kills the query called tag until done is closed.
func (e *engine) kill(tag string, done <-chan struct{}) {
	c, err := e.lib.dial(e.data)
	if err != nil {
		return // the query ends by itself
	}
	defer c.close()
	again := time.NewTicker(killAgain)
	defer again.Stop()
	for {
		_, _ = c.query([]byte("KILL QUERY WHERE Settings['"+tagSetting+"'] = "+quote(tag)+" ASYNC"), "Null")
		select {
		case <-done:
			return
		case <-again.C:
		}
	}
}

// inMemory returns a file that has the content and no name.
func inMemory(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("rows", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "rows")
	if _, err := file.Write(content); err != nil {
		return nil, errors.Join(fmt.Errorf("write rows: %w", err), file.Close())
	}
	return file, nil
}

// newBlock returns an empty block of this engine's revision and time zone.
func (e *engine) newBlock() *proto.Block {
	return &proto.Block{ServerContext: &column.ServerContext{Revision: revision, Timezone: e.zone,
		VersionMajor: uint64(e.version.Major), VersionMinor: uint64(e.version.Minor)}}
}

// eachBlock calls f with each block of a result in format Native, which the engine writes in protocol revision 0.
func (e *engine) eachBlock(native []byte, f func(*proto.Block) error) error {
	r := chproto.NewReader(bytes.NewReader(native))
	for {
		b := e.newBlock()
		err := b.Decode(r, 0)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read block of engine: %w", err)
		}
		if err := f(b); err != nil {
			return err
		}
	}
}
