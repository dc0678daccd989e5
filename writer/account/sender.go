package account

import (
	"strings"

	"github.com/interlockdev/interlock"
)

// Requester returns the sender of a message: the principal of its credential, or on a server
// without credentials the agent. A session's name would not do: an agent that opens another one
// would have another budget.
func Requester(task interlock.Task) string {
	if task.Principal != "" {
		return task.Principal
	}
	return task.Agent
}

// Origin returns the account with the message that the writer was at work on when it sent this
// one, or "" if it came otherwise: the server names such senders key: and the account.
func Origin(task interlock.Task) interlock.Key {
	return origin(task.Sender)
}

func origin(sender string) interlock.Key {
	key, ok := strings.CutPrefix(sender, "key:")
	if !ok {
		return ""
	}
	return interlock.Key(key)
}

// approved is a person's yes. A question that has answered itself is none of ours: the
// message's sender has put it there.
func approved(a *interlock.Approval) *Approval {
	if a == nil || a.Verdict != interlock.Approved || a.By == interlock.ByPolicy {
		return nil
	}
	return &Approval{Question: a.Question, By: a.Answerer()}
}
