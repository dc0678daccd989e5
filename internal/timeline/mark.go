package timeline

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// markOf returns the mark of an event; ok is false if it has none. The kinds are in answers.
func markOf(index interlock.Index, ev *record.Event) (m Mark, ok bool) {
	m = Mark{Namespace: ev.Namespace, Agent: ev.Agent, Time: ev.At, Index: index}
	if len(ev.Claims) > 0 {
		m.Key = ev.Claims[0].Key
	}
	dead := interlock.TaskState(ev.Op) == interlock.TaskDead
	switch {
	case ev.Kind == record.Refused:
		switch ev.Code {
		case interlock.CodeFenced, interlock.CodeTaken, interlock.CodeExpired:
			m.Kind = "refused_fence"
		case interlock.CodeStale:
			m.Kind = "stale_commit"
		default:
			m.Kind = "refused"
		}
		m.Fence = ev.Fence
		m.Text = fmt.Sprintf("%s was refused at %s: %s.", ev.Outcome, m.Key, ev.Code)
	case len(ev.Cycle) > 0 && ev.Reason == record.ByDeadlock:
		var steps []string
		for i := range ev.Cycle {
			step := prose.AgentName(ev.Cycle[i].Agent)
			if key := ev.Cycle[i].Key; key != "" { // else it is a declared wait
				step += " at " + string(key)
			}
			steps = append(steps, step)
		}
		m.Kind, m.Text = "deadlock", fmt.Sprintf(
			"Deadlock: %s waited for each other, and %s was refused.", strings.Join(steps, ", "), prose.AgentName(ev.Agent),
		)
	case ev.Kind == record.Left && ev.Reason == record.ByBreak:
		m.Kind, m.Text = "barrier_broken", fmt.Sprintf("The barrier %s lost %s.", m.Key, prose.AgentName(ev.Asker))
	case ev.Kind == record.YieldRequested:
		m.Kind, m.Text = "yield_asked", fmt.Sprintf(
			"%s asks %s to yield %s.", prose.AgentName(ev.Asker), prose.AgentName(ev.Agent), m.Key,
		)
	case ev.Kind == record.AttemptFailed:
		m.Kind, m.Text = "attempt_failed", fmt.Sprintf("Attempt %d has failed: %s.", ev.Generation, ev.Reason)
		if dead {
			m.Kind = "dead_letter"
		}
	case ev.Kind == record.TaskMoved && dead:
		m.Kind, m.Text = "dead_letter", "The task is not tried again."
	case ev.Kind == record.ApprovalRequested:
		m.Kind, m.Text = "approval_asked", fmt.Sprintf("%s asks a person.", prose.AgentName(ev.Agent))
	case ev.Kind == record.ApprovalDecided:
		m.Kind, m.Text = "approval_decided", fmt.Sprintf("%s has decided.", prose.AgentName(ev.Agent))
	case ev.Kind == record.Opened:
		m.Kind, m.Text = "owner", fmt.Sprintf("A server began epoch %d.", ev.Epoch)
	default:
		return m, false
	}
	return m, true
}
