//go:build unix

package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/interlockdev/interlock/internal/launch"
)

// postgres is a server with its data in a temporary directory, on a socket there and on no port.
type postgres struct {
	dir, programs string
	attributes    *syscall.SysProcAttr
	cmd           *exec.Cmd
	ended         chan struct{}
}

// startPostgres starts a server; nil if there is none on this machine.
func startPostgres(ctx context.Context) (_ *postgres, err error) {
	p := &postgres{programs: launch.PostgresPrograms(), ended: make(chan struct{})}
	if p.programs == "" {
		return nil, nil
	}
	// The path of a socket is short, and the directory belongs to the user of the server.
	if p.dir, err = os.MkdirTemp("", "interlock-pg-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(p.dir))
		}
	}()
	if p.attributes, err = launch.PostgresAttributes(p.dir); err != nil {
		return nil, err
	}
	data := filepath.Join(p.dir, "data")
	init := p.command(
		ctx, "initdb", "--pgdata="+data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync",
	)
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return p, p.start(context.WithoutCancel(ctx), data)
}

func (p *postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.programs, name), args...)
	cmd.Dir, cmd.SysProcAttr = p.dir, p.attributes
	return cmd
}

// start starts the server, and returns when it takes connections.
func (p *postgres) start(ctx context.Context, data string) error {
	p.cmd = p.command(ctx, "postgres", "-D", data, "-k", p.dir, "-c", "listen_addresses=", "-c", "fsync=off")
	log, err := p.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	ready := make(chan string, 1)
	go func() {
		defer close(p.ended)
		var said strings.Builder
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), "database system is ready to accept") {
				ready <- ""
			}
			if said.Len() < 4<<10 {
				fmt.Fprintln(&said, lines.Text())
			}
		}
		_ = p.cmd.Wait()
		select {
		case ready <- "PostgreSQL ended before it was ready: " + said.String():
		default:
		}
	}()
	if failure := <-ready; failure != "" {
		return errors.New(failure)
	}
	return nil
}

// stop ends the server with its connections, and removes its data.
func (p *postgres) stop() error {
	err := p.cmd.Process.Signal(syscall.SIGINT)
	<-p.ended
	return errors.Join(err, os.RemoveAll(p.dir))
}

// psql is the client, and url the address of a database.
func (p *postgres) psql() string { return filepath.Join(p.programs, "psql") }

// environ leads clients to the server, and the program of migrations to psql.
func (p *postgres) environ() []string {
	return []string{"PGHOST=" + p.dir, "PGUSER=postgres", "PSQL=" + p.psql()}
}

func (p *postgres) url(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s", database, p.dir)
}
