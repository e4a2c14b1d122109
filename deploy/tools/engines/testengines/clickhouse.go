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

// ClickHouse returns the ClickHouse that ClickHouseEnv names. If it names none, it calls StartClickHouse.
func ClickHouse(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	if addr := os.Getenv(ClickHouseEnv); addr != "" {
		e := &Engine{Name: "clickhouse", Addr: addr, HTTPAddr: os.Getenv(ClickHouseHTTPEnv), Source: ClickHouseEnv}
		return e.remote(ctx, e.pingClickHouse, log)
	}
	return StartClickHouse(ctx, dir, log)
}

// StartClickHouse starts a ClickHouse that serves the native protocol and HTTP without a password: a server if this
// machine has one, otherwise chserver.
func StartClickHouse(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	path, missing := findClickHouse(ctx)
	if missing == nil {
		return startClickHouse(ctx, dir, log, path, installedClickHouse(path))
	}
	e, err := StartChserver(ctx, dir, log)
	if err != nil {
		return nil, fmt.Errorf("no clickhouse, and %s is not set: %w", ClickHouseEnv, errors.Join(missing, err))
	}
	return e, nil
}

// StartChserver starts ClickHouse's engine as a library behind the program chserver, which it builds from this module's
// source.
func StartChserver(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	library, err := installChdb(ctx, log)
	if err != nil {
		return nil, err
	}
	return startClickHouse(ctx, dir, log, "chserver with "+library, chserver(library, ""))
}

// ChserverWith is StartChserver whose user has only these grants: statements GRANT … ON … without TO, separated by
// semicolons.
func ChserverWith(grants string) Starter {
	return func(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
		library, err := installChdb(ctx, log)
		if err != nil {
			return nil, err
		}
		return startClickHouse(ctx, dir, log, "chserver with "+library, chserver(library, grants))
	}
}

func startClickHouse(
	ctx context.Context, dir string, log *slog.Logger, source string, server clickhouseServer,
) (*Engine, error) {
	dir, release, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("start clickhouse: %w", err)
	}
	ports, err := claimPorts(2)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start clickhouse: %w", err), release())
	}
	return startClickHouseAt(ctx, dir, ports, release, log, source, server)
}

func startClickHouseAt(ctx context.Context, dir string, ports []int, release func() error, log *slog.Logger,
	source string, server clickhouseServer) (*Engine, error) {
	e := &Engine{Name: "clickhouse", Source: source, Addr: clickhouseURL("clickhouse", ports[0]),
		HTTPAddr: clickhouseURL("http", ports[1])}
	p := server(dir, ports[0], ports[1])
	p.log, p.ping, p.quit, p.output = log, e.pingClickHouse, syscall.SIGTERM, filepath.Join(dir, "clickhouse.log")
	return e.started(ctx, p, release, log)
}

func clickhouseURL(scheme string, port int) string {
	u := url.URL{Scheme: scheme, User: url.User("default"), Host: hostPort(port), Path: "/default"}
	return u.String()
}

// pingClickHouse asks a running ClickHouse for its version.
func (e *Engine) pingClickHouse(ctx context.Context) error {
	options, err := clickhouse.ParseDSN(e.Addr)
	if err != nil {
		return err
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return err
	}
	err = conn.QueryRow(ctx, "SELECT version()").Scan(&e.Version)
	return errors.Join(err, conn.Close())
}

// clickhouseServer returns a process whose data and configuration lie in dir.
type clickhouseServer func(dir string, nativePort, httpPort int) *process

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
  <backups><allowed_path>%[3]s/../backups/</allowed_path></backups>
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

// chserver builds the program once per engine, so that an edit of its source does not change it between two starts.
func chserver(library, grants string, shards ...string) clickhouseServer {
	return func(dir string, nativePort, httpPort int) *process {
		program, built := filepath.Join(dir, "chserver"), false
		return &process{
			prepare: func(ctx context.Context) error {
				if built {
					return nil
				}
				_, err := run(ctx, "", nil, "go", "build", "-race=false", "-o", program, chserverPackage)
				built = err == nil
				return err
			},
			command: func() (*exec.Cmd, error) {
				return exec.Command(program, "-library", library, "-data", filepath.Join(dir, "data"), "-shards",
					strings.Join(shards, ","), "-grants", grants, "-native", hostPort(nativePort), "-http", hostPort(httpPort)), nil
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
