package pgtest

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/remotetest"
)

// A standby that lags behind is promoted under a server that lives, and under one that died with the primary. Either
// way no fence is given out twice, and the operator reads in the log what happened.
func TestLostTail(t *testing.T) {
	for _, lives := range []bool{true, false} {
		t.Run(fmt.Sprint("owner lives ", lives), func(t *testing.T) {
			primary := postgrestest.Start(t, "-c", "fsync=on")
			follower := primary.Standby(t, "-c", "fsync=on")
			at := primary.URL(t, follower)
			server := remotetest.Serve(t, at)
			server.Becomes("ready")
			kept := server.Grant("account:1")
			if jumped := server.Metric("interlock_fences_jumped"); jumped != "0" {
				t.Errorf("interlock_fences_jumped is %s before", jumped)
			}
			follower.Caught(t, primary)
			follower.Stop(t, syscall.SIGINT)
			lost := server.Grant("account:2")
			primary.Stop(t, syscall.SIGKILL)
			server.LosesTail(lives, kept, lost, func() {
				follower.Restart(t)
				follower.Promote(t)
			})
		})
	}
}
