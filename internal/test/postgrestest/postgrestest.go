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

	dir        string // holds the data and the socket; short, because a socket's path is
	args       []string
	attributes *syscall.SysProcAttr
	cmd        *exec.Cmd     // nil when it is stopped
	ended      chan struct{} // closed when cmd has ended
	databases  atomic.Int64
}

// Start starts a server. It does not sync its files, unless args say otherwise: they
// are arguments of the command postgres.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := newServer(t, args)
	s.run(
		t, "initdb", "--pgdata="+s.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale",
		"--no-sync",
	)
	s.Restart(t)
	return s
}

// newServer makes the directory of one.
func newServer(t testing.TB, args []string) *Server {
	t.Helper()
	tools.Need(t, "postgres")
	dir, err := os.MkdirTemp("", "pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Server{Programs: launch.PostgresPrograms(), dir: dir, args: args}
	if s.attributes, err = launch.PostgresAttributes(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(t, syscall.SIGINT) }) // disconnect all clients, and stop in order
	return s
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// command makes a command of PostgreSQL's programs.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.Programs, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.attributes
	return cmd
}

func (s *Server) run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// Restart starts a server that was stopped.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if failure := s.start(t); failure != "" {
		t.Fatal(failure)
	}
}

// start returns why the server does not start.
func (s *Server) start(t testing.TB) (failure string) {
	t.Helper()
	cmd := s.command("postgres", append([]string{
		"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_prepared_transactions=10", "-c",
		"deadlock_timeout=100ms",
	}, s.args...)...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	ready := make(chan string, 1)
	go func() {
		defer close(ended)
		var said strings.Builder
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), "database system is ready to accept") { // connections, or read-only ones
				select {
				case ready <- "":
				default:
				}
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
	if failure = <-ready; failure == "" {
		s.cmd, s.ended = cmd, ended
	} else {
		<-ended
	}
	return failure
}

// Stop ends the server by a signal: SIGINT is pg_ctl's mode fast, SIGQUIT its mode immediate,
// which leaves the recovery to the next start, and SIGKILL is kill -9.
func (s *Server) Stop(t testing.TB, by syscall.Signal) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Signal(by); err != nil {
		t.Error(err)
	}
	<-s.ended // also the processes of its sessions
	s.cmd = nil
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

// Socket is where the server listens.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// URL makes a new, empty database and returns its URL, for clients that want the primary of this server
// and of others.
func (s *Server) URL(t testing.TB, others ...*Server) string {
	t.Helper()
	hosts := s.dir
	for _, other := range others {
		hosts += "," + other.dir
	}
	return fmt.Sprintf("postgres://postgres@/%s?host=%s", s.create(t), hosts)
}

func (s *Server) dsn(database string) string {
	return fmt.Sprintf("host=%s user=postgres dbname=%s", s.dir, database)
}
