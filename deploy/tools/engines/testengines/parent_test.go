package testengines_test

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

func TestEngineDiesWithItsParent(t *testing.T) {
	for _, name := range []string{"kafka", "clickhouse"} { // and Postgres, in the next test
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startParent(t, name, t.TempDir()).kill(t)
		})
	}
}

// A busy backend does not notice for a long time that its server has ended, and a new server refuses to start beside it.
func TestPostgresStartsThoughABackendOfAKilledServerRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startParent(t, "postgres", dir)
	conn, err := pgx.Connect(t.Context(), p.engine.Addr)
	if err != nil {
		t.Fatal(err)
	}
	busy := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT count(*) FROM generate_series(1, 1e12)")
		busy <- err
	}()
	awaitBackend(t, p.engine)
	p.kill(t)
	select {
	case err := <-busy:
		t.Fatalf("the backend did not survive its server: %v", err)
	default:
	}
	e := begin(t, testengines.StartPostgres, dir)
	if err := <-busy; err == nil {
		t.Error("the backend finished")
	}
	if err := (postgresStore{}).write(t.Context(), e, "kept"); err != nil {
		t.Error(err)
	}
}

// awaitBackend waits until a backend is busy.
func awaitBackend(t *testing.T, e *testengines.Engine) {
	t.Helper()
	err := withPostgres(t.Context(), e, func(conn *pgx.Conn) error {
		return retry(t.Context(), func() error {
			const busy = `SELECT 1 FROM pg_stat_activity
				WHERE state = 'active' AND query LIKE '%generate_series%' AND pid <> pg_backend_pid()`
			return conn.QueryRow(t.Context(), busy).Scan(new(int))
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// parent is a process that has started an engine.
type parent struct {
	cmd    *exec.Cmd
	engine *testengines.Engine // only Name and Addr are set
}

func startParent(t *testing.T, name, dir string) *parent {
	t.Helper()
	skipIfShort(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentEnv+"="+name+" "+dir)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the test has killed it
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the parent of %s did not print its address: %v", name, err)
	}
	return &parent{cmd, &testengines.Engine{Name: name, Addr: strings.TrimSpace(addr)}}
}

// kill kills the parent and waits until its engine has ended, too.
func (p *parent) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // "signal: killed"
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	err := retry(ctx, func() error {
		conn, err := net.Dial("tcp", hostPort(t, p.engine))
		if err != nil {
			return nil
		}
		conn.Close()
		return context.DeadlineExceeded
	})
	if err != nil {
		t.Fatalf("%s outlived its parent: it listens on %s", p.engine.Name, p.engine.Addr)
	}
}
