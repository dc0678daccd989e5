package engine_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// post sends messages and acknowledges them at once.
type post struct{ *load }

func newPost(t *testing.T) post {
	p := post{newLoad(t)}
	p.step(&engine.SetQueue{Head: p.head(interlock.SessionID{}), Queue: interlock.TaskQueue{Name: "bank"}})
	p.step(&engine.SetPattern{Head: p.head(interlock.SessionID{}), Pattern: interlock.Pattern{
		Name: "account", Shape: "account:{id}", Write: interlock.WriteSingle, WriterQueue: "bank",
	}})
	return p
}

// settle has a message to a key done, with what it writes there, if anything.
func (p post) settle(key interlock.Key, payload []byte, state string) {
	p.t.Helper()
	p.step(&engine.Submit{Head: p.head(
		interlock.SessionID{},
	), Task: engine.TaskSpec{ID: p.id(), TaskSpec: interlock.TaskSpec{
		Message: true, Key: key, Payload: payload,
	}}})
	lease := p.id()
	p.step(&engine.Pull{Head: p.head(interlock.SessionID{}), ID: p.id(), Queue: "bank", Max: 1, Leases: [][16]byte{lease}})
	c := &engine.Ack{Head: p.head(interlock.SessionID{}), Lease: lease}
	if state != "" {
		c.Writes = []interlock.Write{{Key: key, Op: interlock.Put, Body: []byte(state)}}
	}
	if eff := p.step(c); eff.Outcome != engine.Done {
		p.t.Fatalf("an acknowledgement is answered by %v %s %s", eff.Outcome, eff.Code, prose.Sentence(eff.Message))
	}
}

// kept returns the numbers of the entries that the log of a key keeps.
func (p post) kept(key interlock.Key) (first, next uint64) {
	p.t.Helper()
	for from := uint64(0); ; {
		var entries []engine.LogEntry
		entries, first, next = p.e.Log("default", key, from, 0)
		for i := range entries {
			if want := max(from, first) + uint64(i); entries[i].Seq != want {
				p.t.Fatalf("%s has entry %d where %d is expected", key, entries[i].Seq, want)
			}
		}
		if len(entries) == 0 {
			return first, next
		}
		from = next
	}
}

// again compares the state with the one replayed from the journal, and continues with the one
// restored from a snapshot of it.
func (p post) again() {
	p.t.Helper()
	fresh := engine.New()
	for _, entry := range p.log {
		if err := fresh.Apply(entry); err != nil {
			p.t.Fatal(err)
		}
	}
	if fresh.Hash() != p.e.Hash() {
		p.t.Fatal("the state after replay has another hash")
	}
	var buf bytes.Buffer
	if err := fresh.WriteSnapshot(&buf); err != nil {
		p.t.Fatal(err)
	}
	read, err := engine.ReadSnapshot(&buf)
	if err != nil {
		p.t.Fatal(err)
	}
	if read.Hash() != p.e.Hash() {
		p.t.Fatal("a snapshot reads back with another hash")
	}
	p.e = read
	p.step(&engine.Recover{Head: engine.Head{At: p.now}, Epoch: 2})
}

func TestLogIsBoundedByEntries(t *testing.T) {
	p := newPost(t)
	for range interlock.MaxLogEntries + 10 {
		p.settle("account:1", nil, "")
	}
	p.settle("account:2", nil, "")
	for range 2 {
		if first, next := p.kept("account:1"); first != 11 || next != interlock.MaxLogEntries+11 {
			t.Errorf("entries from %d to before %d are kept", first, next)
		}
		if first, next := p.kept("account:2"); first != 1 || next != 2 {
			t.Errorf("of the other key, entries from %d to before %d are kept", first, next)
		}
		p.again()
	}
	if entries, _, next := p.e.Log("default", "account:1", 20, 3); len(entries) != 3 || entries[0].Seq != 20 || next != 23 {
		t.Errorf("from 20 come %d entries, then %d", len(entries), next)
	}
}

func TestLogIsBoundedByBytes(t *testing.T) {
	p := newPost(t)
	payload := []byte(`"` + strings.Repeat("x", 200<<10) + `"`)
	state := `"` + strings.Repeat("y", 100<<10) + `"`
	for range 10 {
		p.settle("account:1", payload, state)
	}
	for range 2 {
		if first, next := p.kept("account:1"); first != 8 || next != 11 {
			t.Errorf("entries from %d to before %d are kept", first, next)
		}
		p.again()
	}
}

// TestLogsAreBoundedTogether has the oldest entries of a namespace go first, whichever
// keys they are of. The numbers of a log that is forgotten are not given out again.
func TestLogsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.settle("account:old", nil, "")
	p.settle("account:old", nil, "")
	p.settle("account:some", nil, "")
	payload := []byte(`"` + strings.Repeat("x", interlock.MaxPayloadBytes-2) + `"`)
	const perKey = 3 // so that no log has too much by itself
	for i := range interlock.MaxSpaceLogBytes/interlock.MaxPayloadBytes - 1 {
		p.settle(interlock.Key(fmt.Sprintf("account:%d", i/perKey)), payload, "")
	}
	if first, next := p.kept("account:old"); first != 1 || next != 3 {
		t.Errorf("before there is too much, entries from %d to before %d are kept", first, next)
	}
	p.settle("account:some", payload, "")
	if first, next := p.kept("account:old"); first != 3 || next != 3 {
		t.Errorf("of the oldest log, entries from %d to before %d are kept", first, next)
	}
	if first, next := p.kept("account:some"); first != 2 || next != 3 {
		t.Errorf("of the log that goes on, entries from %d to before %d are kept", first, next)
	}
	p.again()
	p.settle("account:old", nil, "")
	if first, next := p.kept("account:old"); first != 3 || next != 4 {
		t.Errorf("of a log that begins again, entries from %d to before %d are kept", first, next)
	}
}

// TestLogOutlivesHistory has the log keep states that the documents' history has lost.
func TestLogOutlivesHistory(t *testing.T) {
	p := newPost(t)
	const n = interlock.MaxVersions + 20
	for i := range n {
		p.settle("account:1", nil, fmt.Sprint(i))
		p.settle("account:1", nil, "")
	}
	for range 2 {
		entries, _, _ := p.e.Log("default", "account:1", 0, 2*n)
		if len(entries) != 2*n {
			t.Fatalf("%d entries are kept", len(entries))
		}
		for i := range entries {
			x := &entries[i]
			body := ""
			if x.Changed {
				body = fmt.Sprint(i / 2)
			}
			if x.Changed != (i%2 == 0) || string(x.Document.Body) != body ||
				x.Document.Version != entries[i-i%2].Document.Version {
				t.Errorf("entry %d changed it: %v, to %q in version %d", x.Seq, x.Changed, x.Document.Body, x.Document.Version)
			}
		}
		p.again()
	}
}
