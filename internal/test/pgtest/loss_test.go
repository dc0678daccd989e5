package pgtest

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/remotetest"
)

// grant acquires a key and returns the lease's fence.
func grant(t *testing.T, s *remotetest.Instance, key string) (fence uint64) {
	t.Helper()
	var got struct {
		Lease struct {
			Fence uint64 `json:",string"`
		}
	}
	body := fmt.Sprintf(`{"agent":"holder","ttl_ms":600000,"claims":[{"key":%q}]}`, key)
	s.MustCall(http.MethodPost, "/v1/leases", body, &got)
	return got.Lease.Fence
}

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
			kept := grant(t, server, "account:1")
			if jumped := server.Metric("interlock_fences_jumped"); jumped != "0" {
				t.Errorf("interlock_fences_jumped is %s before", jumped)
			}
			follower.Caught(t, primary)
			follower.Stop(t, syscall.SIGINT)
			lost := grant(t, server, "account:2")
			primary.Stop(t, syscall.SIGKILL)
			if !lives {
				server.Kill()
			}
			follower.Restart(t)
			follower.Promote(t)
			if lives {
				// It notices at the next request, and stands by.
				server.Status(http.MethodGet, "/v1/keys/account:1")
				server.Becomes("standby")
			} else {
				server.Start()
			}
			server.Becomes("ready")
			if fence := grant(t, server, "account:2"); fence < lost+1<<40 || fence < kept {
				t.Errorf("fence %d after %d, which was lost", fence, lost)
			}
			if jumped := server.Metric("interlock_fences_jumped"); jumped != "1" {
				t.Errorf("interlock_fences_jumped is %s", jumped)
			}
			want := "fences jump ahead"
			if lives {
				want = "acknowledged entries are lost"
			}
			if !server.Logged(want) {
				t.Errorf("the log does not contain %q", want)
			}
		})
	}
}
