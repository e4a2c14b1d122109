package main

import (
	"testing"

	"linkstream/schema/testkit"
)

func TestSharedEnvironment(t *testing.T) {
	got := sharedEnvironment([]string{"PATH=/bin", "LINKSTREAM_OPS_LISTEN=:9080", "LINKSTREAM_OPS_PPROF=true",
		"LINKSTREAM_POSTGRES_DSN_FILE=/a", "LINKSTREAM_CLICKHOUSE_DSN_FILE=/b", "LINKSTREAM_KAFKA_PASSWORD_FILE=/c"})
	testkit.Equal(t, "environment", got, []string{"PATH=/bin", "LINKSTREAM_OPS_PPROF=true", "LINKSTREAM_KAFKA_PASSWORD_FILE=/c"})
}
