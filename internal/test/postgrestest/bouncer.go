package postgrestest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// Bouncer starts pgbouncer, a pooler in transaction mode, in front of the server until the test ends, and
// returns the URL of a new, empty database through it.
func (s *Server) Bouncer(t testing.TB) (url string) {
	t.Helper()
	tools.Need(t, "pgbouncer")
	config := filepath.Join(s.dir, "pgbouncer.ini")
	if err := os.WriteFile(config, fmt.Appendf(nil, `[databases]
* = host=%[1]s user=postgres
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = %[1]s
auth_type = any
pool_mode = transaction
default_pool_size = 2
`, s.dir), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tools.Bouncer(), config)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.attributes
	log, err := cmd.StderrPipe()
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
		for lines := bufio.NewScanner(log); lines.Scan(); {
			fmt.Fprintln(&said, lines.Text())
			if strings.Contains(lines.Text(), "process up") {
				ready <- ""
			}
		}
		_ = cmd.Wait()
		select {
		case ready <- "pgbouncer ended before it was ready:\n" + said.String():
		default:
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	if failure := <-ready; failure != "" {
		t.Fatal(failure)
	}
	return fmt.Sprintf("postgres://postgres@/%s?host=%s&port=6432", s.create(t), s.dir)
}
