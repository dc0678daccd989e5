package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// A client that asks more often than its tenant may is slowed down, and nothing that it asked
// for is lost.
func TestRequestsAboveTheQuotaAreSlowedDown(t *testing.T) {
	crowd(t, func(s *stage) {
		const many, perSecond = 60, 5
		c := s.client("a")
		if err := c.Configure(s.ctx, interlock.Settings{Quota: interlock.Quota{Requests: perSecond}}); err != nil {
			s.t.Fatal(err)
		}
		began := time.Now()
		done := make(chan error, many)
		for range many {
			go func() {
				lease, err := c.Acquire(s.ctx, exclusively("k"))
				if err == nil {
					err = lease.Release(context.Background(), client.Outcome{})
				}
				done <- err
			}()
		}
		for range many {
			if err := <-done; err != nil {
				s.t.Error(err)
			}
		}
		if took := time.Since(began); took < (many-2*perSecond)*time.Second/perSecond || took > 10*time.Minute {
			s.t.Errorf("%d requests at %d a second took %v", many, perSecond, took)
		}
	})
}
