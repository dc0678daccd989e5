package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/interlockdev/interlock/internal/launch"
)

// postgresServer is Debian's newest PostgreSQL.
type postgresServer struct{}

func (postgresServer) missing() string {
	if postgresPrograms() == "" {
		return "postgresql"
	}
	return ""
}

func (postgresServer) start(ctx context.Context, dir string) (*running, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	bin, data, attributes := postgresPrograms(), filepath.Join(dir, "data"), launch.Attributes()
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		if attributes.Credential, err = unprivileged(); err != nil {
			return nil, err
		}
		if err := os.Chown(dir, int(attributes.Credential.Uid), int(attributes.Credential.Gid)); err != nil {
			return nil, err
		}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata="+data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, attributes
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", "", "-c", "listen_addresses=127.0.0.1", "-p", ports[0],
		"-c", "max_connections=1100")
	cmd.Dir, cmd.SysProcAttr = dir, attributes
	p, err := start(ctx, cmd, "database system is ready to accept connections")
	if err != nil {
		return nil, err
	}
	// Immediate shutdown: it ends its children, which a SIGKILL would leave.
	return &running{process: p, addr: "host=127.0.0.1 port=" + ports[0] + " user=postgres dbname=postgres sslmode=disable", quit: syscall.SIGQUIT}, nil
}

// postgresPrograms is where the programs of the newest server are; "" if there is none.
// Debian keeps them out of PATH.
func postgresPrograms() string {
	newest, dir := -1, ""
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	for _, name := range found {
		bin := filepath.Dir(name)
		if version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin))); err == nil && version > newest {
			newest, dir = version, bin
		}
	}
	return dir
}

// unprivileged is a user for the server.
func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
