//go:build unix

package launch

import (
	"errors"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// PostgresPrograms is where the newest PostgreSQL of this machine has its programs; ""
// if there is none. Debian keeps those of the server out of PATH.
func PostgresPrograms() string {
	newest, dir := -1, ""
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	for _, name := range found {
		bin := filepath.Dir(name)
		if version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin))); err == nil && version > newest {
			newest, dir = version, bin
		}
	}
	if dir == "" {
		if name, err := exec.LookPath("postgres"); err == nil {
			dir = filepath.Dir(name)
		}
	}
	return dir
}

// PostgresUser is a user for a PostgreSQL server, which refuses to run as root.
func PostgresUser() (*syscall.Credential, error) {
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
