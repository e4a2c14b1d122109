//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is chdb's C interface, bound without cgo.
type library struct {
	connect        func(argc int32, argv unsafe.Pointer) unsafe.Pointer // returns a chdb_connection *
	closeConn      func(conn unsafe.Pointer)
	query          func(conn unsafe.Pointer, sql *byte, sqlLen uintptr, format *byte, formatLen uintptr) unsafe.Pointer
	resultBuffer   func(result unsafe.Pointer) *byte
	resultLength   func(result unsafe.Pointer) uintptr
	resultError    func(result unsafe.Pointer) string
	rowsWritten    func(result unsafe.Pointer) uint64
	destroyResult  func(result unsafe.Pointer)
	handlesSignals func(on int32)

	goSignals [32]kernelSigaction // by number: what Go does at a signal
}

// kernelSigaction is struct kernel_sigaction of amd64.
type kernelSigaction struct{ handler, flags, restorer, mask uintptr }

func loadLibrary(path string) (*library, error) {
	lib := &library{}
	// chdb_connect puts its own handlers in the place of Go's, or, told not to, the default ones. Either would end the
	// process where Go makes a panic of a nil dereference. So Go's are put back after each connect.
	lib.eachSignal(func(signal uintptr, action *kernelSigaction) {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, signal, 0, uintptr(unsafe.Pointer(action)), 8, 0, 0)
	})
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("load %q: %w", path, err)
	}
	for name, f := range map[string]any{
		"chdb_connect": &lib.connect, "chdb_close_conn": &lib.closeConn, "chdb_query_n": &lib.query,
		"chdb_result_buffer": &lib.resultBuffer, "chdb_result_length": &lib.resultLength,
		"chdb_result_error": &lib.resultError, "chdb_result_rows_written": &lib.rowsWritten,
		"chdb_destroy_query_result": &lib.destroyResult, "chdb_set_signal_handlers_enabled": &lib.handlesSignals,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("load %q: %w", path, err)
		}
		purego.RegisterFunc(f, symbol)
	}
	lib.handlesSignals(0)
	return lib, nil
}

func (lib *library) restoreSignals() {
	lib.eachSignal(func(signal uintptr, action *kernelSigaction) {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(action)), 0, 8, 0, 0)
	})
}

func (lib *library) eachSignal(f func(signal uintptr, action *kernelSigaction)) {
	for i := range lib.goSignals {
		f(uintptr(i), &lib.goSignals[i])
	}
}

// conn is a connection to the engine: a session with its own settings. chdb runs the queries of one connection one
// after the other, those of several at once.
type conn struct {
	lib    *library
	handle unsafe.Pointer // chdb_connection *
}

// dial opens a connection. The first one starts the engine on the data, with the configuration in it; when the last one
// is closed, it stops.
func (lib *library) dial(data string) (*conn, error) {
	args := [][]byte{[]byte("clickhouse\x00"), []byte("--path=" + data + "\x00"),
		[]byte("--config-file=" + filepath.Join(data, configName) + "\x00")}
	argv := []*byte{&args[0][0], &args[1][0], &args[2][0]}
	handle := lib.connect(int32(len(argv)), unsafe.Pointer(&argv[0]))
	runtime.KeepAlive(args)
	lib.restoreSignals()
	if handle == nil {
		return nil, fmt.Errorf("open engine in %q: it does not say why; its folder may be in use", data)
	}
	return &conn{lib, handle}, nil
}

func (c *conn) close() {
	c.lib.closeConn(c.handle)
	c.handle = nil // its memory may be another connection's
}

// result is what a query returned.
type result struct {
	data    []byte // in the query's format
	written uint64 // rows
}

// query runs sql. A query that fails returns an *exception.
func (c *conn) query(sql []byte, format string) (result, error) {
	f := []byte(format)
	r := c.lib.query(*(*unsafe.Pointer)(c.handle), unsafe.SliceData(sql), uintptr(len(sql)),
		unsafe.SliceData(f), uintptr(len(f)))
	if r == nil {
		return result{}, errors.New("engine returned no result")
	}
	defer c.lib.destroyResult(r)
	if text := c.lib.resultError(r); text != "" {
		return result{}, newException(text)
	}
	data := unsafe.Slice(c.lib.resultBuffer(r), c.lib.resultLength(r))
	return result{append([]byte(nil), data...), c.lib.rowsWritten(r)}, nil
}
