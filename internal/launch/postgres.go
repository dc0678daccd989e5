package launch

import (
	"os/exec"
	"path/filepath"
	"strconv"
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
