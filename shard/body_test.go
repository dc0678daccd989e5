package shard

import (
	"bytes"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// TestBodiesAreReadAtSubmit has bodies stop being JSON when they stand in line. That is
// seen only by an owner that reads them, which would keep all tenants waiting.
func TestBodiesAreReadAtSubmit(t *testing.T) {
	for name, hand := range map[string]func(*hand, *engine.Commit) error{
		"Submit":  func(h *hand, c *engine.Commit) error { return h.Submit(c) },
		"Execute": func(h *hand, c *engine.Commit) error { return h.s.Execute(c) },
	} {
		h, in := newHand(t, new(memjournal.Store)), newInbox()
		body := append(bytes.Repeat([]byte{' '}, 1<<20-1), '1')
		c := &engine.Commit{
			Head:          engine.Head{Namespace: "default", From: in},
			CommitRequest: interlock.CommitRequest{Writes: []interlock.Write{{Key: "d", Op: interlock.Put, Body: body}}},
		}
		if err := hand(h, c); err != nil {
			t.Fatal(name, err)
		}
		body[len(body)-1] = '!'
		for range 2 {
			h.turns()
			h.Append()
			h.Answer()
		}
		if got := in.all(); len(got) != 1 || got[0].Outcome != engine.Done {
			t.Errorf("%s: the owner has read the body: %+v", name, got)
		}
	}
}
