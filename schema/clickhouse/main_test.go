package clickhouse_test

import (
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/local/localtest"
)

var engines localtest.Engines

func TestMain(m *testing.M) { goleak.VerifyTestMain(engines.Of(m)) }
