package testengines_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/testengines"
)

var starters = map[string]testengines.Starter{
	"postgres": testengines.Postgres, "kafka": testengines.Kafka, "clickhouse": testengines.ClickHouse,
}

// parentEnv makes this test binary a program that starts an engine, "name dir", says where it is, and waits.
const parentEnv = "LINKSTREAM_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	if engine := os.Getenv(parentEnv); engine != "" {
		if err := beParent(engine); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	goleak.VerifyTestMain(m)
}

func beParent(engine string) error {
	var name, dir string
	if _, err := fmt.Sscanf(engine, "%s %s", &name, &dir); err != nil {
		return err
	}
	e, err := starters[name](context.Background(), dir, discard)
	if err != nil {
		return err
	}
	_, err = fmt.Println(e.Addr)
	return err
}
