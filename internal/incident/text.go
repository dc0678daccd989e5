package incident

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/prose"
)

// describe sets the sentences of an incident.
func (in *Incident) describe() {
	in.Command = in.look()
	switch in.Kind {
	case Deadlock:
		in.Text = fmt.Sprintf(
			"%s waited for each other at %s; %s was refused",
			list(in.names()), list(texts(in.Keys)), prose.AgentName(in.Agents[0]),
		)
		if len(in.Agents) == 1 { // flows of one agent
			in.Text = fmt.Sprintf(
				"Requests of %s waited for each other at %s; one was refused", prose.AgentName(in.Agents[0]), list(texts(in.Keys)),
			)
		}
		in.Next = "Ask for these keys in one request, or always in the same order."
	case LostLease:
		in.describeLoss()
	case StaleWrite:
		in.Text = fmt.Sprintf("A late write of %s at %s was refused: %s", prose.AgentName(in.Agents[0]), in.where(), in.Cause)
		in.Next = "No data was lost. Have the agent read again and ask for a new lease before it writes."
	case StuckWait:
		in.describeWait()
	case FailOver:
		in.Text = fmt.Sprintf("A server began a new epoch after %s without an event", prose.Short(in.Took))
		in.Next = "If no one restarted it on purpose, read the log of the server that was active before."
	case DeadLetter:
		in.Text = fmt.Sprintf("The task %s is not tried again", in.Task)
		if in.Cause != "" {
			in.Text += ": " + in.Cause
		}
		in.Next = "Read why it failed, then replay or delete it."
		in.Command = "interlock task get " + in.Task.String()
	}
	if in.Count > 1 {
		in.Text += fmt.Sprintf(", %d times", in.Count)
	}
	in.Text += "."
}

func (in *Incident) describeLoss() {
	agent, held := prose.AgentName(in.Agents[0]), prose.Short(in.Took)
	switch in.Cause {
	case "max_hold":
		in.Text = fmt.Sprintf("%s lost %s: it had held the lease for %s, as long as it may", agent, in.where(), held)
		in.Next = "Hold it for less time, or raise max-hold of the pattern."
	case "stall":
		in.Text = fmt.Sprintf("%s lost %s after %s: it sent heartbeats without progress", agent, in.where(), held)
		in.Next = "Look for a tool call that hangs, or raise stall."
	case "revoked":
		in.Text = fmt.Sprintf("An operator revoked %s from %s after %s", in.where(), agent, held)
		in.Next = "The audit trail has the operator and the reason."
		in.Command = fmt.Sprintf("interlock log --from %d", in.Index)
	case "session_expired":
		in.Text = fmt.Sprintf("%s lost %s after %s: its session expired without a heartbeat", agent, in.where(), held)
		in.Next = "See whether its process or its network failed; if it was only slow, raise the ttl."
	default:
		in.Text = fmt.Sprintf("%s lost %s after %s: it did not renew within the ttl", agent, in.where(), held)
		in.Next = "See whether its process failed; if it was only slow, raise the ttl or use a session with heartbeats."
	}
}

func (in *Incident) describeWait() {
	agent, took := prose.AgentName(in.Agents[0]), prose.Short(in.Took)
	switch {
	case in.GoesOn:
		in.Text = fmt.Sprintf("%s has waited for %s for %s", agent, in.where(), took)
	case in.Cause == "granted":
		in.Text = fmt.Sprintf("%s waited %s for %s before it had its turn", agent, took, in.where())
	case in.Cause == "wait_limit":
		in.Text = fmt.Sprintf("%s gave up %s after %s, its longest wait", agent, in.where(), took)
	default:
		in.Text = fmt.Sprintf("%s left the line for %s after %s: %s", agent, in.where(), took, in.Cause)
	}
	in.Next = "See the holder at that moment."
	if len(in.Keys) > 0 && in.Before > 0 {
		in.Command = fmt.Sprintf("interlock at --index %d why %s", in.Before, prose.ShellWord(string(in.Keys[0])))
		if strings.HasPrefix(string(in.Keys[0]), "-") {
			in.Command = in.look()
		}
	}
}

// look is the command that shows the moment before.
func (in *Incident) look() string {
	if in.Before == 0 {
		return ""
	}
	return fmt.Sprintf("interlock at --index %d key waits", in.Before)
}

func (in *Incident) names() (names []string) {
	for _, a := range in.Agents {
		names = append(names, prose.AgentName(a))
	}
	return names
}

func (in *Incident) where() string {
	if len(in.Keys) == 0 {
		return "another agent" // a declared wait
	}
	return list(texts(in.Keys))
}

func texts(keys []interlock.Key) (list []string) {
	for _, k := range keys {
		list = append(list, string(k))
	}
	return list
}

// list is "a, b and c", or "a, b and 4 more".
func list(names []string) string {
	const most = 4
	if len(names) > most {
		names = append(names[:most-1:most-1], fmt.Sprintf("%d more", len(names)-most+1))
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
