//go:build engines && nightly

package e2e_test

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// setClock sets the wall clock of a running program, and of no other, to so long after the machine's. Its monotonic
// clock goes on, as when an operator or a time server sets a machine's clock.
//
// Nothing in the program is made for it. A Go program asks the kernel's function clock_gettime for the time, whose
// address is in a variable of Go's runtime. setClock writes a function into the program's memory that calls the
// kernel's and adds to CLOCK_REALTIME, over one that only debuggers call, and then its address into the variable.
func (p *program) setClock(t *testing.T, ahead time.Duration) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Logf("NOT TESTED: a program's clock can be set on linux/amd64 only")
		return
	}
	variable := symbol(t, p.name, "runtime.vdsoClockgettimeSym")
	function := symbol(t, p.name, "runtime.debugCallV2")
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", p.process.Cmd.Process.Pid), os.O_RDWR, 0)
	testkit.Must(t, err)
	defer memory.Close()
	word := func(at uint64) uint64 {
		var b [8]byte
		_, err := memory.ReadAt(b[:], int64(at))
		testkit.Must(t, err)
		return binary.LittleEndian.Uint64(b[:])
	}
	write := func(at uint64, b []byte) {
		_, err := memory.WriteAt(b, int64(at))
		testkit.Must(t, err)
	}
	seconds := binary.LittleEndian.AppendUint64(nil, uint64(int64(ahead/time.Second)))
	code, data := function.Value+8, function.Value // functions begin at multiples of 16
	if kernels := word(variable.Value); kernels != code {
		machineCode := addToRealTime(kernels, code, data)
		if uint64(8+len(machineCode)) > function.Size || kernels == 0 {
			t.Fatalf("%s has no room for a clock, or the kernel no clock_gettime", p.name)
		}
		write(code, machineCode)
		write(data, seconds)
		write(variable.Value, binary.LittleEndian.AppendUint64(nil, code))
	}
	write(data, seconds)
	p.awaitClock(t, ahead)
}

// addToRealTime returns a function for the address code that calls the kernel's clock_gettime(clock, *timespec) and
// adds the number at data to the seconds if the clock is CLOCK_REALTIME, which is 0.
func addToRealTime(kernels, code, data uint64) []byte {
	b := []byte{0x57, 0x56, // push rdi; push rsi
		0x48, 0x83, 0xec, 0x08, // sub rsp, 8
		0x48, 0xb8} // mov rax, kernels
	b = binary.LittleEndian.AppendUint64(b, kernels)
	b = append(b, 0xff, 0xd0, // call rax
		0x48, 0x83, 0xc4, 0x08, // add rsp, 8
		0x5e, 0x5f, // pop rsi; pop rdi
		0x85, 0xff, // test edi, edi
		0x75, 0x0a, // jnz to the end
		0x48, 0x8b, 0x15) // mov rdx, [data]
	b = binary.LittleEndian.AppendUint32(b, uint32(data-(code+uint64(len(b))+4)))
	return append(b, 0x48, 0x01, 0x16, // add [rsi], rdx
		0xc3) // ret
}

// symbol finds a variable or function of a built program.
func symbol(t *testing.T, program, name string) elf.Symbol {
	t.Helper()
	file, err := elf.Open(launch.Program(t, program))
	testkit.Must(t, err)
	defer file.Close()
	all, err := file.Symbols()
	testkit.Must(t, err)
	for _, s := range all {
		if s.Name == name && s.Value%8 == 0 && file.Type == elf.ET_EXEC {
			return s
		}
	}
	t.Fatalf("%s has no symbol %s at a fixed address", program, name)
	return elf.Symbol{}
}

// awaitClock waits until a program dates its answers so long after the machine's clock.
func (p *program) awaitClock(t *testing.T, ahead time.Duration) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		at, err := http.ParseTime(call(t, http.MethodGet, p.ops+"/healthz", "").Header.Get("Date"))
		if err == nil && time.Until(at.Add(-ahead)).Abs() > time.Minute {
			err = fmt.Errorf("the clock of %s shows %v", p.name, at)
		}
		return err
	})
}
