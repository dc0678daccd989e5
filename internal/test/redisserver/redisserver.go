package redisserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// Kind is a program.
type Kind string

// The kinds. Redis is of version 7.0, which cannot wait until a replica has synced.
const (
	Redis  Kind = "redis-server"
	Valkey Kind = tools.Valkey
)

// Kinds are all.
var Kinds = []Kind{Redis, Valkey}

func (k Kind) String() string {
	if k == Valkey {
		return "Valkey"
	}
	return "Redis"
}

// Durable are the settings of a server that keeps what it has answered.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// Server is a server that runs until the test ends.
type Server struct {
	Addr string
	Dir  string // of its files

	kind  Kind
	args  []string
	cmd   *exec.Cmd     // nil when it is stopped
	ended chan struct{} // closed when cmd has ended
}

// Start starts one with settings.
func Start(t testing.TB, k Kind, args ...string) *Server {
	t.Helper()
	tools.Need(t, string(k))
	s := &Server{Addr: busy.Ports(t, 1)[0], kind: k, Dir: t.TempDir(), args: args}
	t.Cleanup(func() { s.Stop(t, syscall.SIGKILL) })
	s.Restart(t)
	return s
}

// Replica starts one that follows s.
func (s *Server) Replica(t testing.TB, args ...string) *Server {
	t.Helper()
	return Start(t, s.kind, append(s.ReplicaOf(), args...)...)
}

// ReplicaOf are the settings of one that follows s.
func (s *Server) ReplicaOf() []string {
	host, port, _ := net.SplitHostPort(s.Addr)
	return []string{"--replicaof", host + " " + port}
}

// Restart starts a server that was stopped, with further settings.
func (s *Server) Restart(t testing.TB, args ...string) {
	t.Helper()
	s.args = append(s.args, args...)
	path := string(s.kind)
	if s.kind == Valkey {
		path = filepath.Join(tools.Root(), path)
	}
	host, port, _ := net.SplitHostPort(s.Addr)
	cmd := exec.Command(path, append([]string{
		"--bind", host, "--port", port, "--dir", s.Dir, "--save", "", "--repl-diskless-sync-delay", "0",
	}, s.args...)...)
	cmd.Dir, cmd.SysProcAttr = s.Dir, launch.Attributes()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		var said strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "eady to accept connections") {
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
		case ready <- fmt.Sprintf("%v ended before it was ready:\n%s", s.kind, said.String()):
		default:
		}
	}()
	if failure := <-ready; failure != "" {
		t.Fatal(failure)
	}
	s.cmd, s.ended = cmd, ended
}

// Stop ends the server by a signal.
func (s *Server) Stop(t testing.TB, by syscall.Signal) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Signal(by); err != nil {
		t.Error(err)
	}
	<-s.ended
	s.cmd = nil
}

// URL returns that of a journal at the server, and at others if it fails.
func (s *Server) URL(journal string, others ...*Server) string {
	hosts := s.Addr
	for _, other := range others {
		hosts += "," + other.Addr
	}
	return "redis://" + hosts + "/0?journal=" + journal
}

// Do carries a command out and returns its answer: a text, or the items of a list, one a line.
func (s *Server) Do(t testing.TB, args ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(c, "$%d\r\n%s\r\n", len(arg), arg)
	}
	answer, err := read(bufio.NewReader(c))
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return answer
}

func read(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, text := line[0], strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(text)
	switch kind {
	case '-':
		return "", errors.New(text)
	case '$':
		if n < 0 {
			return "", nil
		}
		bulk := make([]byte, n+2)
		_, err := io.ReadFull(r, bulk)
		return string(bulk[:n]), err
	case '*':
		var items []string
		for range n {
			item, err := read(r)
			if err != nil {
				return "", err
			}
			items = append(items, item)
		}
		return strings.Join(items, "\n"), nil
	}
	return text, nil
}

// Info returns a field of the answer to INFO.
func (s *Server) Info(t testing.TB, field string) string {
	t.Helper()
	for line := range strings.SplitSeq(s.Do(t, "INFO"), "\n") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value
		}
	}
	return ""
}

// Caught waits until a replica has what its primary has written, and its file begins with the state that it was sent.
func (s *Server) Caught(t testing.TB, primary *Server) {
	t.Helper()
	busy.Wait(t, "a replica", func() bool {
		return s.Info(t, "master_link_status") == "up" &&
			s.Info(t, "slave_repl_offset") == primary.Info(t, "master_repl_offset") &&
			s.Info(t, "aof_rewrite_in_progress") == "0" && s.Info(t, "aof_rewrite_scheduled") == "0"
	})
}

// Promote makes a replica a primary, with what it has.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.args = append(s.args, "--replicaof", "no one") // also after a restart
	s.Do(t, "REPLICAOF", "NO", "ONE")
}

// Follow makes a server a replica of a primary, and waits until it has what that has.
func (s *Server) Follow(t testing.TB, primary *Server) {
	t.Helper()
	host, port, _ := net.SplitHostPort(primary.Addr)
	s.Do(t, "REPLICAOF", host, port)
	s.Caught(t, primary)
}
