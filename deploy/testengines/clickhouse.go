package testengines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ClickHouse starts a ClickHouse that serves the native protocol and HTTP without a password: a server if the machine
// has one, else the engine as a library behind the program chserver, which is built from this module's source.
func ClickHouse(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	e := &Engine{Name: "clickhouse", Addr: os.Getenv(ClickHouseEnv), HTTPAddr: os.Getenv(ClickHouseHTTPEnv),
		Source: ClickHouseEnv}
	ping := func(ctx context.Context) (err error) {
		e.Version, err = clickhouseVersion(ctx, e.Addr)
		return err
	}
	if e.Addr != "" {
		return e.remote(ctx, ping, log)
	}
	server, source, err := clickhouseOfMachine(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("no clickhouse: %w", errors.Join(fmt.Errorf("%s is not set", ClickHouseEnv), err))
	}
	dir, release, err := claim(dir)
	if err != nil {
		return nil, fmt.Errorf("start clickhouse: %w", err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start clickhouse: %w", err), release())
	}
	e.Source = source
	e.Addr = clickhouseURL("clickhouse", ports[0])
	e.HTTPAddr = clickhouseURL("http", ports[1])
	p := server(dir, ports[0], ports[1])
	p.log, p.ping, p.quit, p.output = log, ping, syscall.SIGTERM, filepath.Join(dir, "clickhouse.log")
	return e.started(ctx, p, release, log)
}

func clickhouseURL(scheme string, port int) string {
	u := url.URL{Scheme: scheme, User: url.User("default"), Host: hostPort(port), Path: "/default"}
	return u.String()
}

// clickhouseVersion asks a running ClickHouse for its version.
func clickhouseVersion(ctx context.Context, addr string) (version string, err error) {
	options, err := clickhouse.ParseDSN(addr)
	if err != nil {
		return "", err
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, "SELECT version()").Scan(&version)
	return version, errors.Join(err, conn.Close())
}

// clickhouseServer returns the server whose data and log lie in dir, with what sets it apart from other programs.
type clickhouseServer func(dir string, nativePort, httpPort int) *process

func clickhouseOfMachine(ctx context.Context, log *slog.Logger) (server clickhouseServer, source string, err error) {
	path, err := findClickHouse(ctx)
	if err == nil {
		return installedClickHouse(path), path, nil
	}
	library, failed := installChdb(ctx, log)
	if failed != nil {
		return nil, "", errors.Join(err, failed)
	}
	return chserver(library), "chserver with " + library, nil
}

// clickhouseConfig is the whole configuration of a server: one user without a password, on loopback.
const clickhouseConfig = `<clickhouse>
  <logger><console>true</console><level>warning</level></logger>
  <listen_host>` + loopback + `</listen_host>
  <tcp_port>%[1]d</tcp_port>
  <http_port>%[2]d</http_port>
  <path>%[3]s/</path>
  <tmp_path>%[3]s/tmp/</tmp_path>
  <user_files_path>%[3]s/user_files/</user_files_path>
  <format_schema_path>%[3]s/format_schemas/</format_schema_path>
  <user_directories><users_xml><path>%[4]s</path></users_xml></user_directories>
  <users><default><password/><networks><ip>` + loopback + `</ip></networks></default></users>
  <profiles><default/></profiles>
  <quotas><default/></quotas>
</clickhouse>
`

func installedClickHouse(path string) clickhouseServer {
	return func(dir string, nativePort, httpPort int) *process {
		config, data := filepath.Join(dir, "config.xml"), filepath.Join(dir, "data")
		return &process{
			prepare: func(context.Context) error {
				if err := os.MkdirAll(data, 0o700); err != nil {
					return err
				}
				content := fmt.Sprintf(clickhouseConfig, nativePort, httpPort, data, config)
				return os.WriteFile(config, []byte(content), 0o600)
			},
			command: func() (*exec.Cmd, error) { return exec.Command(path, "server", "--config-file="+config), nil },
		}
	}
}

// chserver is built once for an engine: another build must not change the program under a test.
func chserver(library string) clickhouseServer {
	return func(dir string, nativePort, httpPort int) *process {
		program, built := filepath.Join(dir, "chserver"), false
		return &process{
			prepare: func(ctx context.Context) error {
				if built {
					return nil
				}
				_, err := run(ctx, "", []string{"CGO_ENABLED=0", "GOFLAGS="}, "go", "build", "-o", program, chserverPackage)
				built = err == nil
				return err
			},
			command: func() (*exec.Cmd, error) {
				return exec.Command(program, "-library", library, "-data", filepath.Join(dir, "data"),
					"-native", hostPort(nativePort), "-http", hostPort(httpPort)), nil
			},
		}
	}
}

// findClickHouse finds a server on this machine that is recent enough.
func findClickHouse(ctx context.Context) (string, error) {
	path, err := exec.LookPath("clickhouse")
	if err != nil {
		return "", fmt.Errorf("find clickhouse on this machine: %w", err)
	}
	says, err := output(exec.CommandContext(ctx, path, "local", "--query", "SELECT version()"))
	if err != nil {
		return "", err
	}
	var year, month int
	if _, err := fmt.Sscanf(says, "%d.%d", &year, &month); err != nil {
		return "", fmt.Errorf("read version %q of %q: %w", strings.TrimSpace(says), path, err)
	}
	if year*100+month < clickhouseOldest {
		return "", fmt.Errorf("%q is %s, too old", path, strings.TrimSpace(says))
	}
	return path, nil
}
