package prose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// maxToldStuck bounds how many tasks a sentence names that wait outside of the lines.
const maxToldStuck = 3

// AddStuck adds the tasks that stand in no line, and what they hold back, and those that no
// idle worker may hold. If there are no other blockers, a person is needed: to answer, or to
// start a worker that may hold them.
func (x *Explanation) AddStuck(l *engine.HeldBack) {
	var b strings.Builder
	for i := range l.Rows[:min(len(l.Rows), maxToldStuck)] {
		b.WriteString(" " + stuckText(&l.Rows[i]))
	}
	switch n := len(l.Rows) - maxToldStuck; {
	case l.More:
		fmt.Fprintf(&b, " More than %d others wait in the same way.", n)
	case n > 0:
		fmt.Fprintf(&b, " %s in the same way.", Count(n, "other waits", "others wait"))
	}
	x.Text += b.String()
	if x.Advice.Action != interlock.ActRetry || len(x.Chain) > 0 {
		return
	}
	for _, message := range []func(*engine.HeldTask) string{answerIt, letWork} {
		for i := range l.Rows {
			if text := message(&l.Rows[i]); text != "" {
				x.Advice = interlock.Advice{Action: interlock.ActAskHuman, Message: text}
				return
			}
		}
	}
}

// answerIt is the next step for a task that waits for a decision, "" for any other.
func answerIt(row *engine.HeldTask) string {
	t := &row.Task
	if t.State != interlock.TaskAsking {
		return ""
	}
	text := fmt.Sprintf(
		"a person has to answer the question about %s %s (interlock approval get %s)",
		noun(t), t.ID, t.ID,
	)
	if row.Behind > 0 {
		text += "; to avoid waiting behind it, send messages in another session, or under another agent's name"
	}
	return text
}

// letWork is the next step for a task that no idle worker may hold, "" for any other.
func letWork(row *engine.HeldTask) string {
	if len(row.Bars) == 0 {
		return ""
	}
	var rules []string
	add := func(text string) {
		if !slices.Contains(rules, text) {
			rules = append(rules, text)
		}
	}
	for i := range row.Bars {
		if b := &row.Bars[i]; b.Pattern == "" {
			add(fmt.Sprintf("may act for group %s", quoteUnlessPlain(cleanText(row.Task.Group))))
		} else {
			add(fmt.Sprintf("may claim in mode %s by pattern %s", b.Mode, quoteUnlessPlain(cleanText(b.Pattern))))
		}
	}
	return fmt.Sprintf("start a worker for queue %s with a credential that %s, or ask an operator to change that rule; "+
		"the task is then dispatched automatically",
		quoteUnlessPlain(cleanText(row.Task.Queue)), strings.Join(rules, " and "))
}

// stuckText reads: Message q_... of ann to account:1 waits for a decision on "may she?"
// for 12 s, and 2 later messages of the same sender to account:1 wait behind it. Of one that
// is barred: Task q_... of ann waits for a worker: 3 are idle in queue fees, and none of them
// may hold it: pattern accounts does not let 3 claim in mode exclusive.
func stuckText(row *engine.HeldTask) string {
	t := &row.Task
	var b strings.Builder
	name := "Task"
	if noun(t) == "message" {
		name = "Message"
	}
	fmt.Fprintf(&b, "%s %s of %s", name, t.ID, submitterName(t.Agent, t.Principal))
	key := ""
	if len(t.Claims) > 0 {
		key = cleanText(string(t.Claims[0].Key))
	}
	if noun(t) == "message" {
		b.WriteString(" to " + key)
	}
	if len(row.Bars) == 0 {
		b.WriteString(" " + taskPlace(t))
	} else {
		b.WriteString(" " + barredText(row))
	}
	if t.State == interlock.TaskAsking && t.Approval != nil {
		fmt.Fprintf(&b, ", asked %s ago", short(t.Approval.Asked))
	}
	switch {
	case row.Behind > 0:
		fmt.Fprintf(
			&b, "; %s behind it: messages of one sender to a key keep their order",
			Count(row.Behind, "later message of its sender to "+key+" waits", "later messages of its sender to "+key+" wait"),
		)
	case t.State == interlock.TaskAsking, t.Barred && noun(t) != "message":
		b.WriteString("; until then it blocks no other request")
	}
	return b.String() + "."
}

// barredText returns what keeps idle workers from a task.
func barredText(row *engine.HeldTask) string {
	idle := 0
	var bars []string
	for i := range row.Bars {
		b := &row.Bars[i]
		idle += b.Workers
		if b.Pattern == "" {
			bars = append(
				bars, fmt.Sprintf("%d may not act for its group %s", b.Workers, quoteUnlessPlain(cleanText(row.Task.Group))),
			)
			continue
		}
		bars = append(
			bars,
			fmt.Sprintf(
				"the allow list of pattern %s denies %d mode %s", quoteUnlessPlain(cleanText(b.Pattern)), b.Workers, b.Mode,
			),
		)
	}
	return fmt.Sprintf("waits for a worker with the required rights: %s in queue %s, but %s",
		Count(idle, "worker is idle", "workers are idle"), quoteUnlessPlain(cleanText(row.Task.Queue)),
		strings.Join(bars, " and "))
}

// noun tells a message from another task: only a message has the order of a sender.
func noun(t *engine.Task) string {
	if t.Sender != "" {
		return "message"
	}
	return "task"
}
