package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// The end by max_hold leaves the grace to commit and release, as every other end
// does; the next in line has the key right after the release.
func TestMaxHoldWarnsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		began := time.Now()
		lease := s.acquire(
			c, client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{MaxHold: time.Minute, Grace: 5 * time.Second}},
		)
		next := s.wait(s.client("b"), client.Request{Keys: []interlock.Key{"k"}, OnConflict: interlock.Wait})
		next.queued()
		<-lease.Warned()
		if warned := time.Since(began); warned < 39*time.Second || warned > 41*time.Second {
			t.Errorf("warned after %v", warned)
		}
		why := endOf(lease)
		if ended := time.Since(began); ended < 59*time.Second || ended > 61*time.Second {
			t.Errorf("ended after %v", ended)
		}
		if why.Code != interlock.CodeInGrace || why.EndedBy != "max_hold" || why.Advice.Action != interlock.ActStop {
			t.Fatalf("the cause is %+v", why)
		}
		<-time.After(4 * time.Second)
		s.release(lease, "in time")
		l := next.granted()
		if held := time.Since(began); held < 63*time.Second || held > 65*time.Second {
			t.Errorf("the key passed on after %v", held)
		}
		if notes := l.Notes(); len(notes) != 1 || notes[0].Text != "in time" {
			t.Errorf("the next one reads %+v", notes)
		}
		s.release(l, "")
	})
}

// Without a grace nothing is left at the end by max_hold.
func TestMaxHoldWithoutGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		lease := s.acquire(
			c, client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{MaxHold: time.Minute, Grace: client.NoGrace}},
		)
		if why := endOf(lease); why.Code != interlock.CodeExpired || why.EndedBy != "max_hold" {
			t.Errorf("the cause is %+v", why)
		}
	})
}

// endOf waits until the lease is lost, and returns the reason.
func endOf(lease *client.Lease) *interlock.Error {
	ctx := lease.Context()
	<-ctx.Done()
	why, _ := errors.AsType[*interlock.Error](context.Cause(ctx))
	return why
}
