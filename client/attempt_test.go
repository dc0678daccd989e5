package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Work that was done is not repeated if the server refuses its end because of its content, with any code.
func TestHopelessEnds(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "q", MaxAttempts: 3, Backoff: time.Second})
		ends := map[string]client.Done{
			"key":     {Writes: []interlock.Write{{Key: "a//b", Op: interlock.Put, Body: []byte("1")}}},
			"counter": {Writes: []interlock.Write{{Key: "text", Op: interlock.Add, Delta: 1}}},
			"queue":   {Tasks: []client.TaskSpec{{Queue: "nosuch"}}},
		}
		var runs atomic.Int64
		handle := func(_ context.Context, job *client.Job) (client.Done, error) {
			runs.Add(1)
			return ends[job.Task().Kind], nil
		}
		worker := s.work(s.client("w"), client.Worker{Queue: "q", Handle: handle})
		c := s.client("ann")
		s.commit(c, client.Commit{Writes: []interlock.Write{{Key: "text", Op: interlock.Put, Body: []byte(`"text"`)}}})
		for kind := range ends {
			runs.Store(0)
			_, err := c.Await(s.ctx, s.submit(c, client.TaskSpec{Queue: "q", Kind: kind}).ID)
			if no, dead := errors.AsType[*client.TaskError](err); !dead || no.Task.Attempt != 1 || runs.Load() != 1 {
				t.Errorf("%s: after %d runs %v", kind, runs.Load(), err)
			}
		}
		worker.stop()
	})
}

// A fault of the server, or a lease that comes back, shows nothing about the content of an end.
func TestHopelessCodes(t *testing.T) {
	for code, want := range map[interlock.Code]bool{
		interlock.CodeInternal: false, interlock.CodeParked: false, interlock.CodeDenied: false, interlock.CodeHeld: false,
		interlock.CodeNoSpace: false, interlock.CodeOverloaded: false, interlock.CodeUnknownQueue: true,
		interlock.CodeInvalidRequest: true, interlock.CodeForbidden: true,
	} {
		if got := client.Hopeless(code); got != want {
			t.Errorf("%s: %t, want %t", code, got, want)
		}
	}
}
