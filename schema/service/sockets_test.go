package service_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

const socketsRole = "sockets"

// inheritSockets is a program that inherits sockets, and prints them.
func inheritSockets() {
	fs := flag.NewFlagSet("program", flag.ContinueOnError)
	fs.String("edge.listen", "127.0.0.1:8080", "")
	fs.String("api.listen", "127.0.0.1:8081", "")
	if _, err := service.Parse(fs, os.Args[1:]); err != nil {
		fmt.Println(err)
		return
	}
	sockets, err := service.InheritSockets("edge", "api")
	fmt.Printf("error %v\n", err)
	for _, name := range []string{"edge", "api"} {
		ln, inherited, err := sockets.Listen(name, "127.0.0.1:0")
		fmt.Println(name, ln.Addr(), inherited, err)
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if value, set := os.LookupEnv(name); set {
			fmt.Println(name, "is still", value)
		}
	}
	if again, err := service.InheritSockets("edge"); again != nil || err != nil {
		fmt.Println("again", again, err)
	}
}

// managed runs the program of inheritSockets as systemd does, and returns its output.
func managed(t *testing.T, pid, count, names string, sockets ...*os.File) string {
	t.Helper()
	return managedWith(t, "", pid, count, names, sockets...)
}

// managedWith is managed with a setting in the environment.
func managedWith(t *testing.T, setting, pid, count, names string, sockets ...*os.File) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `export LISTEN_PID=`+pid+`; exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+socketsRole, "LISTEN_FDS="+count, "LISTEN_FDNAMES="+names, setting)
	cmd.ExtraFiles = sockets
	out, err := cmd.CombinedOutput()
	testkit.Must(t, err)
	return string(out)
}

// socket listens on a free port and returns its file.
func socket(t *testing.T) (addr string, file *os.File) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer ln.Close()
	file, err = ln.(*net.TCPListener).File()
	testkit.Must(t, err)
	t.Cleanup(func() { file.Close() })
	return ln.Addr().String(), file
}

func TestInheritSockets(t *testing.T) {
	first, one := socket(t)
	second, two := socket(t)
	t.Run("sockets are known by their names", func(t *testing.T) {
		out := managed(t, "$$", "2", "api:edge", one, two)
		want := fmt.Sprintf("error <nil>\nedge %s true <nil>\napi %s true <nil>\n", second, first)
		if out != want {
			t.Errorf("printed\n%swant\n%s", out, want)
		}
	})
	t.Run("an address is used without a passed socket", func(t *testing.T) {
		out := managed(t, "$$", "1", "api", one)
		if !strings.Contains(out, "api "+first+" true <nil>\n") || !strings.Contains(out, " false <nil>\n") ||
			strings.Contains(out, "again") {
			t.Errorf("printed\n%s", out)
		}
	})
	t.Run("sockets of another process are ignored", func(t *testing.T) {
		if out := managed(t, "1", "1", "api", one); strings.Contains(out, first) || strings.Contains(out, "LISTEN_") {
			t.Errorf("printed\n%s", out)
		}
	})
	t.Run("an address in the settings is refused for a socket that was passed", func(t *testing.T) {
		out := managedWith(t, "LINKSTREAM_EDGE_LISTEN=:80", "$$", "2", "api:edge", one, two)
		if !strings.Contains(out, "LINKSTREAM_EDGE_LISTEN") || !strings.Contains(out, "ListenStream") ||
			strings.Contains(out, "API") {
			t.Errorf("printed\n%s", out)
		}
		for _, c := range []struct{ setting, pid string }{{"LINKSTREAM_EDGE_LISTEN=127.0.0.1:0", "$$"},
			{"LINKSTREAM_API_LISTEN=127.0.0.1:0", "1"}} {
			if out := managedWith(t, c.setting, c.pid, "1", "api", one); strings.Contains(out, "ListenStream") {
				t.Errorf("printed\n%s", out)
			}
		}
	})
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer packets.Close()
	udp, err := packets.(*net.UDPConn).File()
	testkit.Must(t, err)
	defer udp.Close()
	for name, c := range map[string]struct {
		count, names, want string
		files              []*os.File
	}{
		"an unknown name":          {"1", "linkstream.socket", "set FileDescriptorName to edge or api", []*os.File{one}},
		"no name":                  {"1", "", "set FileDescriptorName to edge or api", []*os.File{one}},
		"two sockets of one name":  {"2", "edge:edge", `two sockets are called "edge"`, []*os.File{one, two}},
		"no number":                {"many", "edge", `LISTEN_FDS is "many"`, []*os.File{one}},
		"more than any unit has":   {"65", "edge", `LISTEN_FDS is "65"`, []*os.File{one}},
		"a socket that is not TCP": {"1", "edge", `socket "edge"`, []*os.File{udp}},
	} {
		t.Run(name+" is an error", func(t *testing.T) {
			if out := managed(t, "$$", c.count, c.names, c.files...); !strings.Contains(out, c.want) {
				t.Errorf("printed\n%swant %q", out, c.want)
			}
		})
	}
}

func TestStandbyOnInheritedSocket(t *testing.T) {
	ln, err := service.Listen("127.0.0.1:0")
	testkit.Must(t, err)
	port, err := service.Sockets{"edge": ln}.ListenStandby("edge", "", "text/plain", "soon", slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer port.Close()
	answered := make(chan error, 1)
	go func() {
		status, _, body, err := ask(port.Addr(), "/abc")
		if err == nil && (status != 200 || body != "service") {
			err = fmt.Errorf("status %d, body %q", status, body)
		}
		answered <- err
	}()
	select { // 503 would come within a millisecond
	case err := <-answered:
		t.Fatalf("answered before the service took over: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("service") }}
	stop := service.RunInBackground(t.Context(), func(ctx context.Context) {
		if err := service.Serve(ctx, server, port, time.Second); err != nil {
			t.Error(err)
		}
	})
	defer stop()
	testkit.Must(t, <-answered)
}
