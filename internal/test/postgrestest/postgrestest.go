package postgrestest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// Server is a server that runs until the test ends.
type Server struct {
	// Programs is the directory of its programs: pg_dump and so on.
	Programs string

	dir       string // holds the data and the socket; short, because a socket's path is
	databases atomic.Int64
}

// Start starts a server. It does not sync its files, unless args say otherwise: they
// are arguments of the command postgres.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	tools.Need(t, "postgres")
	bin := launch.PostgresPrograms()
	dir, err := os.MkdirTemp("", "pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	attributes := launch.Attributes()
	if os.Getuid() == 0 {
		// PostgreSQL refuses to run as root.
		credential, err := launch.PostgresUser()
		if err != nil {
			t.Fatal(err)
		}
		attributes.Credential = credential
		if err := os.Chown(dir, int(attributes.Credential.Uid), int(attributes.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(
		filepath.Join(bin, "initdb"), "--pgdata="+data, "--username=postgres", "--auth=trust", "--encoding=UTF8",
		"--no-locale", "--no-sync",
	)
	initdb.Dir, initdb.SysProcAttr = dir, attributes
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}

	cmd := exec.Command(filepath.Join(bin, "postgres"), append([]string{
		"-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_prepared_transactions=10", "-c",
		"deadlock_timeout=100ms",
	}, args...)...)
	cmd.Dir, cmd.SysProcAttr = dir, attributes
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // disconnect all clients, and stop in order
		<-ended
	})
	ready := make(chan string, 1)
	go func() {
		defer close(ended)
		var said strings.Builder
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), "database system is ready to accept connections") {
				ready <- ""
			}
			if said.Len() < 4<<10 {
				fmt.Fprintln(&said, lines.Text())
			}
		}
		_ = cmd.Wait()
		select {
		case ready <- "postgres ended before it was ready:\n" + said.String():
		default:
		}
	}()
	if failure := <-ready; failure != "" {
		t.Fatal(failure)
	}
	return &Server{Programs: bin, dir: dir}
}

// Database makes a new, empty database and returns how to connect to it, as its
// superuser.
func (s *Server) Database(t testing.TB) (dsn string) {
	t.Helper()
	return s.dsn(s.create(t))
}

// Environment makes a new, empty database and returns the variables that let psql and its like
// find it.
func (s *Server) Environment(t testing.TB) []string {
	t.Helper()
	return []string{"PGHOST=" + s.dir, "PGUSER=postgres", "PGDATABASE=" + s.create(t)}
}

func (s *Server) create(t testing.TB) (name string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	name = fmt.Sprintf("test%d", s.databases.Add(1))
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return name
}

func (s *Server) dsn(database string) string {
	return fmt.Sprintf("host=%s user=postgres dbname=%s", s.dir, database)
}
