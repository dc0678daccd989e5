package remotetest

import (
	"fmt"
	"net/http"
)

// Grant acquires a key and returns the fence.
func (s *Instance) Grant(key string) (fence uint64) {
	s.Helper()
	var got struct {
		Lease struct {
			Fence uint64 `json:",string"`
		}
	}
	body := fmt.Sprintf(`{"agent":"holder","ttl_ms":600000,"claims":[{"key":%q}]}`, key)
	s.MustCall(http.MethodPost, "/v1/leases", body, &got)
	return got.Lease.Fence
}

// LosesTail lets the engine under a server lose acknowledged entries. The server lives meanwhile, or dies before and
// starts again. Either way fences jump above the lost one, and the log contains what happened.
func (s *Instance) LosesTail(lives bool, kept, lost uint64, lose func()) {
	s.Helper()
	if !lives {
		s.Kill()
	}
	lose()
	if lives {
		// It notices at the next request, and stands by.
		s.Status(http.MethodGet, "/v1/keys/account:1")
		s.Becomes("standby")
	} else {
		s.Start()
	}
	s.Becomes("ready")
	if fence := s.Grant("account:2"); fence < lost+1<<40 || fence < kept {
		s.Errorf("fence %d after %d, which was lost", fence, lost)
	}
	if jumped := s.Metric("interlock_fences_jumped"); jumped != "1" {
		s.Errorf("interlock_fences_jumped is %s", jumped)
	}
	want := "fences jump ahead"
	if lives {
		want = "acknowledged entries are lost"
	}
	if !s.Logged(want) {
		s.Errorf("the log does not contain %q", want)
	}
}
