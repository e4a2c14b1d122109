//go:build !race

package socket_test

import (
	"errors"
	"testing"
)

func TestConnectionAllocatesNothing(t *testing.T) {
	server, client := connect(t)
	converse(t, server, client, many)
	p := make([]byte, 100)
	var err error
	allocs := testing.AllocsPerRun(1000, func() {
		for _, operation := range []func([]byte) (int, error){client.Write, server.Read, server.Write, client.Read} {
			_, failed := operation(p)
			err = errors.Join(err, failed)
		}
	})
	if allocs != 0 || err != nil {
		t.Errorf("%v allocations a request, error %v", allocs, err)
	}
}
