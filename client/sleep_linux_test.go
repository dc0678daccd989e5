package client_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// The first question after the machine has slept longer than the ttl has the right answer: no goroutine of the client
// has run since.
func TestErrAfterSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: 10 * time.Second})
		lease := s.acquire(c, exclusively("k"))
		client.Sleep(9 * time.Second)
		if err := lease.Err(); err != nil {
			t.Errorf("after a short sleep: %v", err)
		}
		client.Sleep(2 * time.Second)
		why, ok := errors.AsType[*interlock.Error](lease.Err())
		if !ok || why.Code != interlock.CodeExpired || lease.Context().Err() == nil {
			t.Errorf("after a long sleep: %v, %v", why, lease.Context().Err())
		}
	})
}
