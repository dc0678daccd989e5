package cli

import (
	"fmt"
	"os"
	"os/user"

	"github.com/interlockdev/interlock"
)

// OwnName is the default name of an agent: user@host:pid.
func OwnName() string {
	name := "somebody"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	full := fmt.Sprintf("%s@%s:%d", name, host, os.Getpid())
	if len(full) > interlock.MaxNameBytes {
		full = full[len(full)-interlock.MaxNameBytes:]
	}
	return full
}
