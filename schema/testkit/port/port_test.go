package port_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"linkstream/schema/testkit"
	"linkstream/schema/testkit/port"
)

const claimEnv = "LINKSTREAM_TEST_CLAIM" // makes this program claim as many ports and print them

func TestMain(m *testing.M) {
	n, err := strconv.Atoi(os.Getenv(claimEnv))
	if err != nil {
		os.Exit(m.Run())
	}
	for range n {
		claimed, err := port.Claim()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(claimed)
	}
}

func TestClaim(t *testing.T) {
	const n = 500 // of 22,768: without claims, several would be the same
	mine := make(map[int]bool)
	for range n {
		claimed, err := port.Claim()
		testkit.Must(t, err)
		if mine[claimed] {
			t.Fatalf("%d is claimed twice", claimed)
		}
		if claimed < 1024 || claimed >= 32768 {
			t.Errorf("port %d is not from 1024 to 32767", claimed)
		}
		mine[claimed] = true
	}
	t.Run("a claimed port can be listened on, again and again", func(t *testing.T) {
		for claimed := range mine {
			for range 2 {
				l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(claimed)))
				testkit.Must(t, err)
				testkit.Close(t, l)
				udp, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(claimed))) // HTTP/3
				testkit.Must(t, err)
				testkit.Close(t, udp)
			}
			break
		}
	})
	t.Run("no other process claims the same port", func(t *testing.T) {
		program, err := os.Executable()
		testkit.Must(t, err)
		other := exec.CommandContext(t.Context(), program)
		other.Env = append(os.Environ(), fmt.Sprint(claimEnv, "=", n))
		out, err := other.Output()
		testkit.Must(t, err)
		lines := strings.Fields(string(out))
		testkit.Equal(t, "ports of the other process", len(lines), n)
		for _, line := range lines {
			claimed, err := strconv.Atoi(line)
			testkit.Must(t, err)
			if mine[claimed] {
				t.Fatalf("%d is claimed by both", claimed)
			}
		}
	})
}
