package testengines

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"linkstream/schema/testkit/port"
)

// Postgres returns the Postgres that PostgresEnv names. If it names none, it calls StartPostgres.
func Postgres(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	if addr := os.Getenv(PostgresEnv); addr != "" {
		e := &Engine{Name: "postgres", Addr: addr, Source: PostgresEnv}
		return e.remote(ctx, e.pingPostgres, log)
	}
	return StartPostgres(ctx, dir, log)
}

// StartPostgres starts a Postgres with the database "postgres" and a superuser. Postgres refuses to run as root: if
// this process is root, Postgres runs as another user, who owns its data.
func StartPostgres(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	programs, err := findPostgres(ctx)
	if err != nil {
		var failed error
		if programs, failed = installPostgres(ctx, log); failed != nil {
			return nil, fmt.Errorf("no postgres, and %s is not set: %w", PostgresEnv, errors.Join(err, failed))
		}
	}
	dir, release, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	p, addr, err := programs.server(dir, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), release())
	}
	e := &Engine{Name: "postgres", Addr: addr, Source: programs.bin, ToolEnv: programs.env,
		CertFile: filepath.Join(dir, "data", "server.crt")}
	p.ping = e.pingPostgres
	return e.started(ctx, p, release, log)
}

// pingPostgres asks a running Postgres for its version.
func (e *Engine) pingPostgres(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, e.Addr)
	if err != nil {
		return err
	}
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&e.Version)
	e.Version, _, _ = strings.Cut(e.Version, " ") // without the distribution's suffix
	return errors.Join(err, conn.Close(ctx))
}

// postgresPrograms are postgres and initdb of one version.
type postgresPrograms struct {
	bin string   // their folder
	env []string // variables by which they find their libraries
}

// server returns the process of a server whose data, log and password are in dir, and its address.
func (pp *postgresPrograms) server(dir string, log *slog.Logger) (p *process, addr string, err error) {
	password, err := postgresPassword(filepath.Join(dir, "password"))
	if err != nil {
		return nil, "", err
	}
	port, err := port.Claim()
	if err != nil {
		return nil, "", err
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: hostPort(port),
		Path: "/postgres", RawQuery: "sslmode=disable"}

	data := filepath.Join(dir, "data")
	// Postgres writes the cluster's name into the command line of each of its processes.
	cluster := fmt.Sprintf("linkstream-%.8x", sha256.Sum256([]byte(data)))
	p = &process{log: log, output: filepath.Join(dir, "postgres.log"), mark: cluster,
		quit: syscall.SIGINT, // fast shutdown: SIGTERM waits for all clients to disconnect
	}
	p.prepare = func(ctx context.Context) error { return pp.prepare(ctx, dir, data) }
	p.command = func() (*exec.Cmd, error) {
		cmd := pp.cmd(context.Background(), "postgres", "-D", data, "-h", loopback, "-p", strconv.Itoa(port))
		for _, setting := range []string{
			"cluster_name=" + cluster, "unix_socket_directories=", "max_connections=200", "ssl=on",
		} {
			cmd.Args = append(cmd.Args, "-c", setting)
		}
		return cmd, dropRoot(cmd, data)
	}
	return p, u.String(), nil
}

// prepare makes data a cluster that a server can start on.
func (pp *postgresPrograms) prepare(ctx context.Context, dir, data string) error {
	if !exists(data) {
		if err := pp.initialise(ctx, dir, data); err != nil {
			return err
		}
	}
	if err := postgresCertificate(data); err != nil {
		return err
	}
	// After a kill, Postgres refuses to start if another process has got the number in this file. No server uses the
	// data: this process has the folder's lock and has killed all processes that carry the mark.
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// postgresCertificate creates the server's certificate where Postgres expects it, if there is none.
func postgresCertificate(data string) error {
	certFile, keyFile := filepath.Join(data, "server.crt"), filepath.Join(data, "server.key")
	if exists(certFile) { // it is written last
		return nil
	}
	cert, key, err := NewCertificate()
	if err != nil {
		return fmt.Errorf("make certificate: %w", err)
	}
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		return err
	}
	return os.WriteFile(certFile, cert, 0o600)
}

func (pp *postgresPrograms) initialise(ctx context.Context, dir, data string) error {
	partial := data + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.Mkdir(partial, 0o700); err != nil {
		return err
	}
	cmd := pp.cmd(ctx, "initdb", "-D", partial, "-U", user, "-A", "scram-sha-256",
		"--pwfile", filepath.Join(dir, "password"), "-E", "UTF8", "--locale", "C")
	if err := dropRoot(cmd, partial); err != nil {
		return err
	}
	if _, err := output(cmd); err != nil {
		return err
	}
	return os.Rename(partial, data)
}

func (pp *postgresPrograms) cmd(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(pp.bin, name), args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), pp.env...)
	return cmd
}

// postgresPassword returns the password in a file, which it creates if it does not exist. Without a password, any user
// of this machine could run programs as the user who runs Postgres.
func postgresPassword(path string) (string, error) {
	password, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		password = []byte(rand.Text())
		err = os.WriteFile(path, password, 0o600)
	}
	return string(password), err
}
