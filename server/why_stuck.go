package server

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// maxToldStuck bounds how many tasks a sentence names that wait outside of the lines.
const maxToldStuck = 3

// tellStuck adds the tasks that stand in no line, and what they hold back. If nothing else
// is in the way, a person's answer is what is needed.
func (x *explanation) tellStuck(l *engine.HeldBack) {
	var b strings.Builder
	for i := range l.Rows[:min(len(l.Rows), maxToldStuck)] {
		b.WriteString(" " + stuckText(&l.Rows[i]))
	}
	switch n := len(l.Rows) - maxToldStuck; {
	case l.More:
		fmt.Fprintf(&b, " More than %d others wait likewise.", n)
	case n > 0:
		fmt.Fprintf(&b, " %s likewise.", count(n, "other waits", "others wait"))
	}
	x.text += b.String()
	if x.advice.Action != interlock.ActRetry || len(x.chain) > 0 {
		return
	}
	for i := range l.Rows {
		t := &l.Rows[i].Task
		if t.State != interlock.TaskAsking {
			continue
		}
		message := fmt.Sprintf("a person has to answer the question about %s %s (interlock approve %s, or POST /v1/approvals/%s)", noun(t), t.ID, t.ID, t.ID)
		if l.Rows[i].Behind > 0 {
			message += "; messages that are not to wait behind it are sent in another session, or under another agent's name"
		}
		x.advice = interlock.Advice{Action: interlock.ActAskHuman, Message: message}
		return
	}
}

// stuckText reads: Message q_... of ann to account:1 waits for a person's word on "may she?"
// for 12 s, and 2 later messages of the same sender to account:1 wait behind it.
func stuckText(row *engine.HeldTask) string {
	t := &row.Task
	var b strings.Builder
	name := "Task"
	if noun(t) == "message" {
		name = "Message"
	}
	fmt.Fprintf(&b, "%s %s of %s", name, t.ID, agentName(t.Agent))
	key := ""
	if len(t.Claims) > 0 {
		key = cleanText(string(t.Claims[0].Key))
	}
	if noun(t) == "message" {
		b.WriteString(" to " + key)
	}
	b.WriteString(" " + taskPlace(t))
	if t.State == interlock.TaskAsking && t.Approval != nil {
		fmt.Fprintf(&b, ", asked %s ago", short(t.Approval.Asked))
	}
	switch {
	case row.Behind > 0:
		fmt.Fprintf(&b, "; %s behind it: messages of one sender to a key keep their order", count(row.Behind, "later message of its sender to "+key+" waits", "later messages of its sender to "+key+" wait"))
	case t.State == interlock.TaskAsking:
		b.WriteString("; until then it is in nobody's way")
	}
	return b.String() + "."
}

// noun tells a message from another task: only a message has the order of a sender.
func noun(t *interlock.Task) string {
	if t.Sender != "" {
		return "message"
	}
	return "task"
}
