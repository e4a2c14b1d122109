package testengines_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/tools/engines/testengines"
)

var starters = map[string]testengines.Starter{
	"postgres": testengines.StartPostgres, "kafka": testengines.StartKafka, "clickhouse": testengines.StartClickHouse,
}

// parentEnv is an environment variable, "name dir". It makes this test binary a program that starts the engine called
// name in dir, prints its address, and waits.
const parentEnv = "LINKSTREAM_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	if engine := os.Getenv(parentEnv); engine != "" {
		if err := startAndPrint(engine); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	goleak.VerifyTestMain(m)
}

func startAndPrint(engine string) error {
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
