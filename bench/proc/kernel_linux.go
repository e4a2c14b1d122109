package proc

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// KernelMemory returns the bytes that the kernel of this machine has for its own structures, such as sockets, and in the buffers of TCP
// connections.
func KernelMemory() (int64, error) {
	slab, err := readField("/proc/meminfo", "Slab:", "Slab: %d")
	if err != nil {
		return 0, err
	}
	pages, err := readField("/proc/net/sockstat", "TCP:", "TCP: inuse %d orphan %d tw %d alloc %d mem %d")
	if err != nil {
		return 0, err
	}
	return slab<<10 + pages*int64(os.Getpagesize()), nil
}

// readField reads the last number that format has from the line that begins with key.
func readField(file, key, format string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read memory of the kernel: %w", err)
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte(key)) {
			continue
		}
		var numbers [5]int64
		fields := []any{&numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4]}[:bytes.Count([]byte(format), []byte("%d"))]
		if _, err := fmt.Sscanf(string(line), format, fields...); err != nil {
			return 0, fmt.Errorf("read memory of the kernel: %q in %s: %w", line, file, err)
		}
		return numbers[len(fields)-1], nil
	}
	return 0, fmt.Errorf("read memory of the kernel: no %q in %s", key, file)
}

// MaxFiles returns how many files this process may have open.
func MaxFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read limit of open files: %w", err)
	}
	return int(min(limit.Cur, 1<<30)), nil
}
