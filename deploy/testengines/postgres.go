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
)

// Postgres starts a Postgres with the database "postgres" and a superuser. Where this process is root, it runs as
// another user, since it refuses root, and that user owns its data.
func Postgres(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	e := &Engine{Name: "postgres", Addr: os.Getenv(PostgresEnv), Source: PostgresEnv}
	ping := func(ctx context.Context) (err error) {
		e.Version, err = postgresVersion(ctx, e.Addr)
		return err
	}
	if e.Addr != "" {
		return e.remote(ctx, ping, log)
	}
	programs, err := findPostgres(ctx)
	if err != nil {
		var failed error
		if programs, failed = installPostgres(ctx, log); failed != nil {
			return nil, fmt.Errorf("no postgres: %w", errors.Join(fmt.Errorf("%s is not set", PostgresEnv), err, failed))
		}
	}
	dir, release, err := claim(dir)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	e.CertFile = filepath.Join(dir, "data", "server.crt")
	p, addr, err := programs.server(dir, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), release())
	}
	p.ping, e.Addr, e.Source = ping, addr, programs.bin
	return e.started(ctx, p, release, log)
}

// postgresVersion asks a running Postgres for its version.
func postgresVersion(ctx context.Context, addr string) (version string, err error) {
	conn, err := pgx.Connect(ctx, addr)
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
	version, _, _ = strings.Cut(version, " ") // without the distribution's own
	return version, errors.Join(err, conn.Close(ctx))
}

// postgresPrograms are postgres and initdb of one version.
type postgresPrograms struct {
	bin string   // the folder that holds them
	env []string // what they need to find their libraries
}

// server returns the server whose data, log and password lie in dir, and its address.
func (pp *postgresPrograms) server(dir string, log *slog.Logger) (p *process, addr string, err error) {
	password, err := postgresPassword(filepath.Join(dir, "password"))
	if err != nil {
		return nil, "", err
	}
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: hostPort(port),
		Path: "/postgres", RawQuery: "sslmode=disable"}

	data := filepath.Join(dir, "data")
	// Postgres writes the cluster's name into the command line of each of its processes.
	cluster := fmt.Sprintf("linkstream-%.8x", sha256.Sum256([]byte(data)))
	p = &process{log: log, output: filepath.Join(dir, "postgres.log"), mark: cluster,
		quit: syscall.SIGINT, // "fast": SIGTERM would wait for all clients to leave
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

// prepare makes data what a server can be started on.
func (pp *postgresPrograms) prepare(ctx context.Context, dir, data string) error {
	if !exists(data) {
		if err := pp.initialise(ctx, dir, data); err != nil {
			return err
		}
	}
	if err := postgresCertificate(data); err != nil {
		return err
	}
	// Postgres takes the file of a killed server for a live one's if the process number is in use again. None of ours
	// is alive: we have the folder's lock, and what carried the mark has been killed.
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// postgresCertificate makes the certificate that the server shows, where it looks for it, if need be.
func postgresCertificate(data string) error {
	certFile, keyFile := filepath.Join(data, "server.crt"), filepath.Join(data, "server.key")
	if exists(certFile) { // which is written last
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

// postgresPassword returns the password that a file holds, which it makes if need be. Without one, any user of this
// machine could run programs as the user who runs Postgres.
func postgresPassword(path string) (string, error) {
	password, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		password = []byte(rand.Text())
		err = os.WriteFile(path, password, 0o600)
	}
	return string(password), err
}
