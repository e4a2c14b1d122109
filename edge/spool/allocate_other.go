//go:build !linux

package spool

import "os"

// allocate does nothing: writeZeros allocates the blocks.
func allocate(*os.File, int) error { return nil }

// prefault does nothing.
func prefault([]byte) {}

// noCopyOnWrite does nothing.
func noCopyOnWrite(string) {}
