package valkeytest

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/redisserver"
	"github.com/interlockdev/interlock/internal/test/remotetest"
)

// The primary is killed under agents at work, and its replica promoted, or it is started again. As each write waits for
// the replica, every answer fits one history.
func TestHistoryOfFaults(t *testing.T) {
	t.Parallel()
	for _, k := range redisserver.Kinds {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			g := begin(t, k, 1)
			remotetest.HistoryOfFaults(t, g, map[string]func(){
				"kill9": func() {
					g.primary.Stop(t, syscall.SIGKILL)
					g.primary.Restart(t)
					g.replicas[0].Caught(t, g.primary)
				},
				"promote": func() { g.failOver(t) },
			})
		})
	}
}

// A server that may forget what it has acknowledged is refused with the exit code of a wrong configuration.
func TestUnsafeServer(t *testing.T) {
	server := redisserver.Start(t, redisserver.Redis, "--appendonly", "yes")
	refused := remotetest.Serve(t, server.URL("j"))
	if code := refused.Ends(); code != 2 || !refused.Logged(`appendfsync is "everysec"`) {
		t.Errorf("the exit code is %d", code)
	}
	accepted := remotetest.Serve(t, server.URL("j"), "--allow-loss")
	accepted.Becomes("ready")
}

// Of two replicas the one that lags behind is promoted, under a server that lives, and under one that died with the
// primary. Either way no fence is given out twice, and the operator reads in the log what happened.
func TestLostTail(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{true, false} {
		t.Run(fmt.Sprint("owner lives ", lives), func(t *testing.T) {
			t.Parallel()
			g := begin(t, redisserver.Valkey, 2)
			current, stale := g.replicas[0], g.replicas[1]
			server := remotetest.Serve(t, g.URL("j"))
			server.Becomes("ready")
			kept := server.Grant("account:1")
			if jumped := server.Metric("interlock_fences_jumped"); jumped != "0" {
				t.Errorf("interlock_fences_jumped is %s before", jumped)
			}
			stale.Caught(t, g.primary)
			stale.Stop(t, syscall.SIGKILL)
			lost := server.Grant("account:2")
			g.primary.Stop(t, syscall.SIGKILL)
			server.LosesTail(lives, kept, lost, func() {
				stale.Restart(t)
				stale.Promote(t)
				current.Follow(t, stale)
			})
		})
	}
}
