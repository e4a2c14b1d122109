//go:build !nightly

package main_test

import (
	"os"
	"testing"

	"linkstream/deploy/test/launch"
)

func TestMain(m *testing.M) { os.Exit(launch.Of(m).Run()) }
