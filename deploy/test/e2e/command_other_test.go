//go:build !linux

package e2e_test

import "testing"

// testCommandTerminal needs Linux's terminals.
func testCommandTerminal(*testing.T, *system, *commandUser) {}
