package view

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// TaskArg is a task that was named.
func TaskArg(id string) (string, error) {
	if _, err := interlock.ParseTaskID(id); err != nil {
		return "", cli.Usagef(
			"%s is no task: want q_ and 32 hexadecimal digits, as `interlock task list` shows them", cli.Quote(cli.Clean(id)),
		)
	}
	return id, nil
}

// Task is a task with the texts that describe it.
type Task api.Task

// TaskOf returns the task of an answer.
func TaskOf(t *api.Task) *Task { return (*Task)(t) }

// TaskPath returns the path of a task, or of an action on it.
func TaskPath(id, action string) string {
	path := "/v1/tasks/" + url.PathEscape(id)
	if action != "" {
		path += "/" + action
	}
	return path
}

// Is reports whether the task stands there.
func (t *Task) Is(s interlock.TaskState) bool { return t.State == s.String() }

// IsSettled reports whether it is over with the task.
func (t *Task) IsSettled() bool {
	return t.Is(interlock.TaskDone) || t.Is(interlock.TaskDead) || t.Is(interlock.TaskCancelled)
}

// Keys are those that it claims.
func (t *Task) Keys() []interlock.Key { return ClaimedKeys(t.Claims) }

// Submitter returns the name of the agent that submitted the task.
func (t *Task) Submitter() string {
	return cli.AgentName(api.Name{Agent: t.Agent, Session: t.Session, Flow: t.Flow})
}

// What the task is for, and on which keys, in a few words.
func (t *Task) What() string {
	words := make([]string, 0, 3)
	for _, word := range []string{t.Kind, t.Purpose} {
		if word = cli.Clean(word); word != "" {
			words = append(words, word)
		}
	}
	if len(t.Claims) > 0 {
		words = append(words, cli.Clean(JoinKeys(t.Keys(), ", ")))
	}
	return cli.OrDash(strings.Join(words, ", "))
}

// Tries is the number of the attempt, and of how many.
func (t *Task) Tries() string {
	return strconv.Itoa(t.Attempt) + "/" + strconv.Itoa(t.MaxAttempts)
}

// Stands returns the task's state, and why.
func (t *Task) Stands() string {
	text, reason := t.Place(), cli.Clean(t.Reason)
	switch {
	case reason == "" || t.Is(interlock.TaskDone):
		return text
	case t.IsSettled():
		return text + ": " + reason
	}
	return text + "; the last one failed: " + reason
}

// Place returns the task's state.
func (t *Task) Place() string {
	text := cli.Clean(t.State)
	switch {
	case t.Is(interlock.TaskScheduled):
		text = fmt.Sprintf("due in %s, attempt %d of %d", cli.ShortMillis(t.Due), t.Attempt+1, t.MaxAttempts)
	case t.Is(interlock.TaskWaiting) && t.Blocker != "":
		text = "waits for " + cli.Clean(string(t.Blocker))
		if t.Position > 0 {
			text += ", place " + strconv.Itoa(t.Position)
		}
		if t.ETA > 0 {
			text += ", about " + cli.ShortMillis(t.ETA)
		}
	case t.Is(interlock.TaskWaiting) && t.Barred:
		text = "waits for a worker that may hold it: no idle one may"
	case t.Is(interlock.TaskWaiting):
		text = "waits for a worker"
	case t.Is(interlock.TaskRunning):
		text = fmt.Sprintf("is running, attempt %d of %d", t.Attempt, t.MaxAttempts)
	case t.Is(interlock.TaskAsking):
		text = "waits for a decision"
	case t.Is(interlock.TaskDone):
		text = fmt.Sprintf("done %s ago, in attempt %d", cli.ShortMillis(t.Settled), t.Attempt)
	case t.Is(interlock.TaskDead):
		text = fmt.Sprintf(
			"dead for %s, after %s", cli.ShortMillis(t.Settled), cli.Count(t.Attempt, "attempt", "attempts"),
		)
	case t.Is(interlock.TaskCancelled):
		text = fmt.Sprintf("cancelled %s ago", cli.ShortMillis(t.Settled))
	}
	return text
}

// Next returns what can be done about the task in its state.
func (t *Task) Next() string {
	id := cli.Clean(t.ID)
	switch {
	case t.Is(interlock.TaskScheduled):
		return "`interlock task reschedule " + id + "` has it due at once"
	case t.Is(interlock.TaskWaiting) && t.Blocker != "":
		return "`interlock why " + cli.Quote(cli.Clean(string(t.Blocker))) + "` shows its blockers"
	case t.Is(interlock.TaskWaiting) && t.Barred && len(t.Claims) > 0:
		return "`interlock why " + cli.Quote(
			cli.Clean(string(t.Keys()[0])),
		) + "` shows the rule that keeps the idle workers from it"
	case t.Is(interlock.TaskWaiting) && t.Barred && t.Agent != "":
		return "`interlock why --agent " + cli.Quote(
			cli.Clean(t.Agent),
		) + "` shows the rule that keeps the idle workers from it"
	case t.Is(interlock.TaskWaiting):
		return "`interlock task work " + cli.Quote(cli.Clean(t.Queue)) + " -- COMMAND` works for its queue"
	case t.Is(interlock.TaskAsking):
		return "answer with `interlock approval approve " + id + "` or `interlock approval deny " + id + "`"
	case t.Is(interlock.TaskDead):
		return "`interlock task replay " + id + "` tries it again, `interlock task delete " + id + "` forgets it"
	case t.Is(interlock.TaskCancelled):
		return "`interlock task replay " + id + "` takes it up again"
	}
	return ""
}

// StateColour returns the colour of a state in a table.
func (t *Task) StateColour() cli.Colour {
	switch {
	case t.Is(interlock.TaskRunning), t.Is(interlock.TaskDone):
		return cli.Green
	case t.Is(interlock.TaskAsking):
		return cli.Yellow
	case t.Is(interlock.TaskDead):
		return cli.Red
	}
	return cli.Plain
}
