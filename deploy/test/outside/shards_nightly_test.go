//go:build deploy && nightly

package outside_test

import (
	"testing"

	"linkstream/schema/storetest"
)

func TestShardsAreAClickStore(t *testing.T) { storetest.TestClickStore(t, openShards) }
