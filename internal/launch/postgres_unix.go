//go:build unix

package launch

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// PostgresAttributes are [Attributes] for a server of PostgreSQL with its files in a folder. It refuses to run as root:
// then it is another user's, and so is the folder.
func PostgresAttributes(dir string) (*syscall.SysProcAttr, error) {
	a := Attributes()
	if os.Getuid() != 0 {
		return a, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil {
			a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			return a, os.Chown(dir, int(uid), int(gid))
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
