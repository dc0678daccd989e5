package prose

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/invisible"
)

// Notice is what the sentence of a webhook's message is made of. The texts are those of agents and
// of persons.
type Notice struct {
	Agent    string
	Actor    string // the principal
	Task     string
	Keys     []interlock.Claim
	Question string
	Verdict  string
	Reason   string // why a lease or a wait ended
	Words    string // why, in words
	Held     time.Duration
	Name     string // of a pattern or a queue
	Effect   string // tool and target of an effect
}

// NoticeOf returns one sentence about an event of a type that webhooks know.
func NoticeOf(typ string, n *Notice) string {
	agent, first := "an agent", "An agent" // within a sentence, and at its beginning
	if n.Agent != "" {
		agent = invisible.Line(n.Agent)
		first = agent
	}
	subject := n.subject()
	switch typ {
	case "approval_requested":
		return fmt.Sprintf("%s asks about %s: %s", first, subject, invisible.Line(n.Question))
	case "approval_decided":
		return fmt.Sprintf(
			"%s was %s by %s%s.", capitalised(subject), n.Verdict,
			invisible.Line(interlock.Answerer(n.Actor, n.Agent)), n.because(),
		)
	case "dead_letter":
		return fmt.Sprintf("%s is dead and is not tried again%s.", capitalised(subject), n.because())
	case "task_failed":
		return fmt.Sprintf("An attempt of %s at %s failed%s.", agent, subject, n.because())
	case "task_done":
		return capitalised(subject) + " is done."
	case "task_cancelled":
		return fmt.Sprintf("%s was cancelled%s.", capitalised(subject), n.because())
	case "lease_expired":
		return fmt.Sprintf("%s lost its lease on %s after %v (%s).", first, subject, n.Held.Round(time.Second), n.Reason)
	case "lease_revoked":
		return fmt.Sprintf("The lease of %s on %s was taken back (%s)%s.", agent, subject, n.Reason, n.because())
	case "deadlock":
		return fmt.Sprintf("The wait of %s for %s was ended to resolve a deadlock.", agent, subject)
	case "barrier_broken":
		return fmt.Sprintf("The barrier %s is broken: a party was lost.", subject)
	case "effect_unknown":
		effect := "an effect"
		if n.Effect != "" {
			effect = invisible.Line(n.Effect)
		}
		return fmt.Sprintf("The outcome of %s by %s is unknown%s.", effect, agent, n.because())
	case "refused":
		return fmt.Sprintf("A request of %s for %s was refused.", agent, subject)
	case "pattern_changed":
		return fmt.Sprintf("Pattern %s was changed.", invisible.Line(n.Name))
	case "queue_changed":
		return fmt.Sprintf("Queue %s was changed.", invisible.Line(n.Name))
	case "settings_changed":
		return "The settings of the namespace were changed."
	case "gap":
		return "Events may have been missed: the journal does not reach back to them any more."
	}
	return typ
}

// subject names what the event is about.
func (n *Notice) subject() string {
	switch {
	case n.Task != "":
		return "task " + n.Task
	case len(n.Keys) == 1:
		return string(n.Keys[0].Key)
	case len(n.Keys) > 1:
		return fmt.Sprintf("%s and %d more", n.Keys[0].Key, len(n.Keys)-1)
	}
	return "its keys"
}

func (n *Notice) because() string {
	if n.Words == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(invisible.Line(n.Words), ".")
}

func capitalised(s string) string {
	if rest, ok := strings.CutPrefix(s, "task "); ok {
		return "Task " + rest
	}
	return s
}
