package spool_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// children are what this test binary does instead of testing when a test has started it again.
var children = map[string]func() error{"append": appendUntilKilled, "refuse": appendWhileDiskRefuses}

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
