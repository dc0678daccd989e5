package engine_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// TestHandoutIsBounded pulls tasks with more documents than one answer has room for: every task
// is handed out, and bodies that do not fit are replaced by their sizes.
func TestHandoutIsBounded(t *testing.T) {
	s := newStand()
	worker := s.session(t)
	s.step(&engine.SetQueue{Head: s.head(worker), Queue: interlock.TaskQueue{Name: "q"}})
	s.want(t, engine.Done)
	const tasks = interlock.MaxReadBytes/interlock.MaxDocumentBytes + 2
	c := &engine.Pull{Head: s.head(worker), ID: s.id(), Queue: "q", Max: interlock.MaxPull, TTL: time.Minute}
	for i := range tasks {
		key := interlock.Key(fmt.Sprint("k", i))
		s.commit(put(string(key), bytes.Repeat([]byte{'x'}, interlock.MaxDocumentBytes)))
		s.step(&engine.Submit{Head: s.head(worker), Task: engine.TaskSpec{
			ID:       s.id(),
			TaskSpec: interlock.TaskSpec{Queue: "q", Claims: []interlock.Claim{{Key: key, Mode: interlock.Exclusive}}},
		}})
		s.want(t, engine.Done)
	}
	for range c.Max {
		c.Leases = append(c.Leases, s.id())
	}
	for _, when := range []string{"at first", "again"} {
		again := *c
		s.step(&again)
		s.want(t, engine.Granted)
		handed := s.out.Effects[0].Handed
		if len(handed) != tasks {
			t.Fatalf("%s: %d tasks of %d", when, len(handed), tasks)
		}
		for i, h := range handed {
			bodies := interlock.MaxDocumentBytes
			if i >= tasks-2 {
				bodies = 0
			}
			if len(h.Documents) != 1 || len(h.Documents[0].Body) != bodies || h.Documents[0].Size != interlock.MaxDocumentBytes {
				t.Errorf(
					"%s: task %d comes with %d documents, and %d bytes of %d, want %d", when, i, len(h.Documents),
					len(h.Documents[0].Body), h.Documents[0].Size, bodies,
				)
			}
		}
	}
}
