//go:build !race

package socket_test

import (
	"errors"
	"testing"
)

func TestConnectionAllocatesNothing(t *testing.T) {
	server, client := connect(t)
	converse(t, server, client, many)
	sent, got := make([]byte, 10), make([]byte, 100) // a read that does not fill its buffer: the next one waits first
	var err error
	allocs := testing.AllocsPerRun(1000, func() {
		_, asked := client.Write(sent)
		_, read := server.Read(got)
		_, answered := server.Write(sent)
		_, taken := client.Read(got)
		err = errors.Join(err, asked, read, answered, taken)
	})
	if allocs != 0 || err != nil {
		t.Errorf("%v allocations a request, error %v", allocs, err)
	}
}
