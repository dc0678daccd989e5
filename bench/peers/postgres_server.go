package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/interlockdev/interlock/internal/launch"
)

// postgresAgents is how many agents may have a connection.
const postgresAgents = 1100

// postgresServer is Debian's newest PostgreSQL.
type postgresServer struct{}

func (postgresServer) missing() string {
	if launch.PostgresPrograms() == "" {
		return "postgresql"
	}
	return ""
}

func (postgresServer) start(ctx context.Context, dir string) (*instance, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	bin, data := launch.PostgresPrograms(), filepath.Join(dir, "data")
	attributes, err := launch.PostgresAttributes(dir)
	if err != nil {
		return nil, err
	}
	initdb := exec.CommandContext(
		ctx, filepath.Join(bin, "initdb"), "--pgdata="+data, "--username=postgres", "--auth=trust", "--encoding=UTF8",
		"--no-locale", "--no-sync",
	)
	initdb.Dir, initdb.SysProcAttr = dir, attributes
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	cmd := exec.Command(filepath.Join(
		bin, "postgres",
	), "-D", data, "-k", "", "-c", "listen_addresses=127.0.0.1", "-p", ports[0],
		"-c", fmt.Sprintf("max_connections=%d", postgresAgents+10), // some are for its superuser alone
		"-c", "deadlock_timeout=1min") // in a long line every waiter would search for a deadlock after a second
	cmd.Dir, cmd.SysProcAttr = dir, attributes
	p, err := start(ctx, cmd, "database system is ready to accept connections")
	if err != nil {
		return nil, err
	}
	// Immediate shutdown: it ends its children, which a SIGKILL would leave.
	return &instance{
		process: p, addr: "host=127.0.0.1 port=" + ports[0] + " user=postgres dbname=postgres sslmode=disable",
		quit: syscall.SIGQUIT,
	}, nil
}
