package account

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// ledger is the log of an account on which something of everything has happened.
func ledger(t *testing.T) []interlock.LogEntry {
	t.Helper()
	for seed := range uint64(100) {
		w := newWorld(t, seed)
		w.run(600)
		for _, key := range w.keys {
			if log := w.logs[key]; hasEverything(log) {
				return log
			}
		}
	}
	t.Fatal("no log has something of everything")
	return nil
}

func hasEverything(log []interlock.LogEntry) bool {
	seen := map[string]bool{}
	for _, e := range log {
		var r Reply
		if json.Unmarshal(e.Reply, &r) != nil {
			return false
		}
		seen[e.Kind+" "+string(r.Outcome)] = true
		seen[string(r.Code)] = true
		seen["approved"] = seen["approved"] || r.ApprovedBy != ""
		seen["lowered"] = seen["lowered"] || r.Advice != nil && r.Advice.Amount != 0
	}
	return !slices.ContainsFunc([]string{
		"credit done", "debit done", "hold done", "capture done", "void done", "transfer pending", "transfer.credit done",
		"transfer.post done",
		string(BelowFloor), "approved", "lowered",
	}, func(want string) bool { return !seen[want] })
}

// edited is a log with one entry changed.
func edited(log []interlock.LogEntry, i int, edit func(*interlock.LogEntry)) []interlock.LogEntry {
	c := slices.Clone(log)
	edit(&c[i])
	return c
}

func TestReplayFindsEdits(t *testing.T) {
	log := ledger(t)
	if _, err := Replay(log); err != nil {
		t.Fatal(err)
	}
	swap := func(in []byte, old, now string) []byte { return bytes.Replace(in, []byte(old), []byte(now), 1) }
	said := func(e *interlock.LogEntry, change func(*Reply)) {
		var r Reply
		if err := json.Unmarshal(e.Reply, &r); err != nil {
			t.Fatal(err)
		}
		change(&r)
		e.Reply = encode(r)
	}
	done := func(kind Kind) func(e interlock.LogEntry) bool {
		return func(e interlock.LogEntry) bool {
			return e.Kind == string(kind) && bytes.Contains(e.Reply, []byte(`"outcome":"done"`))
		}
	}
	refused := func(e interlock.LogEntry) bool { return bytes.Contains(e.Reply, []byte(`"code":"below_floor"`)) }
	approved := func(e interlock.LogEntry) bool { return bytes.Contains(e.Reply, []byte(`"approved_by"`)) }
	lowered := func(e interlock.LogEntry) bool { return bytes.Contains(e.Reply, []byte(`"advice":{"amount"`)) }
	for _, tt := range []struct {
		name string
		at   func(interlock.LogEntry) bool
		edit func(*interlock.LogEntry)
	}{
		{"amount asked for", done(Debit), func(e *interlock.LogEntry) { e.Body = swap(e.Body, `"amount":`, `"amount":1`) }},
		{"kind", done(Debit), func(e *interlock.LogEntry) { e.Kind = string(Credit) }},
		{"reply's amount", done(Credit), func(e *interlock.LogEntry) { said(e, func(r *Reply) { r.Amount++ }) }},
		{"reply's balance", done(Credit), func(e *interlock.LogEntry) { said(e, func(r *Reply) { r.Balance++ }) }},
		{"time", done(Credit), func(e *interlock.LogEntry) { said(e, func(r *Reply) { r.At = r.At.Add(time.Hour) }) }},
		{
			"a text that a reply does not have", done(Credit),
			func(e *interlock.LogEntry) { e.Reply = swap(e.Reply, `{`, `{"paid":true,`) },
		},
		{"requester", done(Hold), func(e *interlock.LogEntry) { said(e, func(r *Reply) { r.By = "mallory" }) }},
		{"who approved", approved, func(e *interlock.LogEntry) { said(e, func(r *Reply) { r.ApprovedBy = "" }) }},
		{
			"an approval that was not needed", done(Void),
			func(e *interlock.LogEntry) { said(e, func(r *Reply) { r.ApprovedBy = "ann" }) },
		},
		{"advice", lowered, func(e *interlock.LogEntry) { said(e, func(r *Reply) { r.Advice = nil }) }},
		{"a refusal that is none", refused, func(e *interlock.LogEntry) {
			said(e, func(r *Reply) { r.Outcome, r.Code, r.Message, r.Next = OutcomeDone, "", "", "" })
		}},
		{"a refusal's reason", refused, func(e *interlock.LogEntry) { said(e, func(r *Reply) { r.Message = "no" }) }},
		{
			"the state's balance", done(Credit),
			func(e *interlock.LogEntry) { e.Document.Body = swap(e.Document.Body, `"balance":`, `"balance":1`) },
		},
		{"the state's policy", done(Credit), func(e *interlock.LogEntry) {
			e.Document.Body = swap(e.Document.Body, `"max_amount":500`, `"max_amount":1`)
		}},
		{"a state that is none", done(Credit), func(e *interlock.LogEntry) { e.Document.Body = []byte("[]") }},
		{"a change kept quiet", done(Credit), func(e *interlock.LogEntry) { e.Changed = false }},
		{"the sender of a post", done(transferPost), func(e *interlock.LogEntry) { e.Sender = "agent:mallory" }},
		{"a command that was never decided", done(Credit), func(e *interlock.LogEntry) { e.State = interlock.TaskDead }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := slices.IndexFunc(log, tt.at)
			if i < 0 {
				t.Fatal("the log has no such entry")
			}
			_, err := Replay(edited(log, i, tt.edit))
			mismatch, ok := errors.AsType[*MismatchError](err)
			if !ok || mismatch.Seq < log[i].Seq || mismatch.Seq > log[i].Seq+1 {
				t.Errorf("entry %d was edited, and the replay says %v", log[i].Seq, err)
			}
		})
	}
	if _, err := Replay(slices.Delete(slices.Clone(log), 5, 6)); err == nil ||
		!strings.Contains(err.Error(), "after entry 5") {
		t.Errorf("an entry is missing, and the replay says %v", err)
	}
}

// Where the beginning is forgotten, the rest is replayed all the same.
func TestReplayOfTheRest(t *testing.T) {
	log := ledger(t)
	rest := log[len(log)/2:]
	whole, err := Replay(log)
	if err != nil {
		t.Fatal(err)
	}
	end, err := Replay(rest)
	if err != nil || !bytes.Equal(end.encode(), whole.encode()) {
		t.Errorf("the rest ends with %s, the whole with %s (%v)", end.encode(), whole.encode(), err)
	}
	last := len(rest) - 1
	for !rest[last].Changed {
		last--
	}
	if _, err := Replay(edited(rest, last, func(e *interlock.LogEntry) {
		e.Document.Body = bytes.Replace(e.Document.Body, []byte(`"balance":`), []byte(`"balance":1`), 1)
	})); err == nil {
		t.Error("an edit in the rest is not found")
	}
	if s, err := Replay(nil); err != nil || s.Balance != 0 {
		t.Errorf("nothing to replay: %+v, %v", s, err)
	}
}

// Earlier versions took the last of two fields with one name: their logs still follow, and so do those of refusals.
func TestReplayOfAFieldTwice(t *testing.T) {
	for _, old := range []bool{true, false} {
		state, log := State{}, []interlock.LogEntry(nil)
		for i, body := range []string{`{"amount":100}`, `{"amount":100,"amount":200}`} {
			id := interlock.TaskID{byte(i + 1)}
			cmd := read("account:1", id.String(), Credit, []byte(body))
			if cmd.twice != (i == 1) {
				t.Fatalf("%s: %v", body, cmd.broken)
			}
			if old {
				cmd.broken = nil
			}
			cmd.By = "a"
			d := Decide(Policy{Currency: "EUR"}, state, cmd, noon)
			if d.Changed != (i == 0 || old) {
				t.Fatalf("%s, old %v: it changed the state: %v", body, old, d.Changed)
			}
			if d.Changed {
				state = d.State
			}
			log = append(log, interlock.LogEntry{
				Seq: uint64(i + 1), Message: id, Kind: string(Credit), Body: []byte(body), Sender: "agent:a",
				State: interlock.TaskDone, Reply: encode(d.Reply), Changed: d.Changed,
				Document: interlock.Document{Key: "account:1", Version: interlock.Version(i + 1), Body: state.encode()},
			})
		}
		if _, err := Replay(log); err != nil {
			t.Errorf("old %v: %v", old, err)
		}
	}
}
