package pgtest

import (
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/remotetest"
)

// PostgreSQL is stopped in its three ways under agents at work, and started again. Every answer fits one history.
func TestHistoryOfFaults(t *testing.T) {
	d := start(t)
	by := func(signal syscall.Signal) func() {
		return func() {
			d.server.Stop(t, signal)
			d.server.Restart(t)
		}
	}
	remotetest.HistoryOfFaults(t, d, map[string]func(){
		"stop": by(syscall.SIGINT), "immediate": by(syscall.SIGQUIT), "kill9": by(syscall.SIGKILL),
	})
}

// Through a pooler two servers take turns as they do without.
func TestPoolerOfServers(t *testing.T) {
	server := postgrestest.Start(t, "-c", "fsync=on")
	remotetest.HandOver(t, &database{server, server.Bouncer(t)})
}

// A database that may forget what it has acknowledged is refused with the exit code of a wrong configuration.
func TestUnsafeDatabase(t *testing.T) {
	server := postgrestest.Start(t) // which does not sync
	at := server.URL(t)
	refused := remotetest.Serve(t, at)
	if code := refused.Ends(); code != 2 || !refused.Logged("fsync is off") {
		t.Errorf("the exit code is %d", code)
	}
	accepted := remotetest.Serve(t, at, "--allow-loss")
	accepted.Becomes("ready")
}
