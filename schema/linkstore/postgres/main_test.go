//go:build engines

package postgres_test

import (
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/tools/engines/enginetest"
)

var engines enginetest.Engines

func TestMain(m *testing.M) { goleak.VerifyTestMain(engines.Of(m)) }
