//go:build !linux

package spool

import "os"

func allocate(f *os.File, size int) error { return writeZeros(f, size) }

func prefault([]byte) {}
