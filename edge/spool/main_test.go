package spool_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// children are the programs that this test binary is when a test runs it with childEnv.
var children = map[string]func() error{"disk-full": appendWhileDiskFull}

const childEnv = "LINKSTREAM_SPOOL_TEST_CHILD"

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childEnv)]; child != nil {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
