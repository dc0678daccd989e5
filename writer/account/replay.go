package account

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
)

// MismatchError names the entry of a log that is not what Decide makes of the ones before.
type MismatchError struct {
	Seq  uint64
	What string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("entry %d of the log does not follow from those before it: %s", e.Seq, e.What)
}

// Replay decides everything in the log of an account again, and compares each state and each
// reply with those in the log; the error is a *MismatchError at the first that differs. It
// returns the state at the log's end, which is that of the document unless another client has
// written it. Where the log's beginning is forgotten, it starts from the first state that is
// left.
func Replay(entries []interlock.LogEntry) (State, error) {
	var r replayProgress
	for i := range entries {
		if i > 0 && entries[i].Seq != entries[i-1].Seq+1 {
			return r.state, &MismatchError{entries[i].Seq, fmt.Sprintf("it comes after entry %d", entries[i-1].Seq)}
		}
		if what := r.step(&entries[i]); what != "" {
			return r.state, &MismatchError{entries[i].Seq, what}
		}
	}
	return r.state, nil
}

// replayProgress is how far a replay has come.
type replayProgress struct {
	state   State
	version interlock.Version // of the document, as the entry before has left it
	known   bool
}

// step decides one entry again, and returns what differs.
func (r *replayProgress) step(e *interlock.LogEntry) string {
	r.known = r.known || e.Seq == 1
	on := r.version
	r.version = e.Document.Version
	if e.State != interlock.TaskDone {
		if e.Changed {
			return "its message was never decided, yet it changed the state"
		}
		return ""
	}
	after := r.state
	if e.Changed {
		var err error
		if after, err = Parse(e.Document); err != nil {
			return err.Error()
		}
	}
	if !r.known {
		r.state, r.known = after, e.Changed
		return ""
	}
	var said Reply
	if err := decode(e.Reply, &said); err != nil {
		return "its reply: " + err.Error()
	}
	cmd := read(e.Document.Key, e.Message.String(), Kind(e.Kind), e.Body)
	cmd.By, cmd.From, cmd.Priority, cmd.Advice = said.By, origin(e.Sender), said.Priority, said.Advice
	if cmd.twice && !strings.Contains(said.Message, cmd.broken.Error()) {
		cmd.broken = nil // an earlier version took the last of the two
	}
	if said.ApprovedBy != "" {
		cmd.Approved = &Approval{By: said.ApprovedBy}
	}
	d := replay(after.Policy, r.state, cmd, said)
	d.Reply.On = said.On
	switch {
	case said.On != nil && *said.On != on:
		return fmt.Sprintf(
			"it was decided on version %d of the account, and the entry before has left version %d", *said.On, on,
		)
	case d.Question != "":
		return "nobody has approved it: " + d.Question
	case !bytes.Equal(encode(d.Reply), encode(said)):
		return fmt.Sprintf("the reply is %s, and must be %s", encode(said), encode(d.Reply))
	case d.Changed != e.Changed:
		return fmt.Sprintf("that it changed the state is %v, and must be %v", e.Changed, d.Changed)
	case d.Changed && !bytes.Equal(d.State.encode(), after.encode()):
		return fmt.Sprintf("the state is %s, and must be %s", after.encode(), d.State.encode())
	}
	r.state = after
	return ""
}

// replay decides as it was decided. The log does not have the question that a person has
// approved: it is the one that the decision asks.
func replay(policy Policy, state State, cmd Command, said Reply) Decision {
	d := Decide(policy, state, cmd, said.At)
	if d.Question != "" && cmd.Approved != nil {
		cmd.Approved.Question = d.Question
		d = Decide(policy, state, cmd, said.At)
	}
	return d
}

func encode(r Reply) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic("account: a reply has no JSON: " + err.Error())
	}
	return text
}
