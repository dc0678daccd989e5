package view

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
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

// Task is a task in the form of the HTTP API.
type Task struct {
	ID       string          `json:"id"`
	Queue    string          `json:"queue"`
	Kind     string          `json:"kind"`
	Claims   []Claim         `json:"claims"`
	Payload  json.RawMessage `json:"payload"`
	Purpose  string          `json:"purpose"`
	Group    string          `json:"group"`
	Priority int             `json:"priority"`
	State    string          `json:"state"`
	cli.Party
	Principal   string          `json:"principal"`
	Age         int64           `json:"age_ms"`
	Due         int64           `json:"due_in_ms"`
	Deadline    int64           `json:"deadline_in_ms"`
	Attempt     int             `json:"attempt"`
	MaxAttempts int             `json:"max_attempts"`
	Attempts    []Attempt       `json:"attempts"`
	Position    int             `json:"position"`
	ETA         int64           `json:"eta_ms"`
	Blocker     interlock.Key   `json:"blocker"`
	Barred      bool            `json:"barred"`
	Approval    *Approval       `json:"approval"`
	Result      json.RawMessage `json:"result"`
	Settled     int64           `json:"settled_ms"`
	Reason      string          `json:"reason"`
}

// Attempt is one go at a task that has ended.
type Attempt struct {
	Number int `json:"number"`
	cli.Party
	Fence   interlock.Fence `json:"fence,string"`
	EndedBy string          `json:"ended_by"`
	Reason  string          `json:"reason"`
	Held    int64           `json:"held_ms"`
	Age     int64           `json:"age_ms"`
}

// Approval is a question to a person, and the answer.
type Approval struct {
	Question string `json:"question"`
	Agent    string `json:"agent"`
	Asked    int64  `json:"asked_ms"`
	Left     int64  `json:"left_ms"`
	OnLimit  string `json:"on_limit"`
	Verdict  string `json:"verdict"`
	By       string `json:"by"`
	Name     string `json:"principal"`
	Reason   string `json:"reason"`
	Needed   int    `json:"needed"`
	Given    []struct {
		By     string `json:"by"`
		Name   string `json:"principal"`
		Reason string `json:"reason"`
	} `json:"approvals"`
	Packet *struct {
		Packet
		Stale []Change `json:"stale"`
	} `json:"packet"`
}

// Change is a document that has changed since it was read.
type Change struct {
	Key  interlock.Key `json:"key"`
	Then Document      `json:"then"`
	Now  Document      `json:"now"`

	Between []Document `json:"between"`
	Left    int        `json:"more_between"`

	Diff struct {
		Patch json.RawMessage `json:"patch"`
		Text  string          `json:"text"`
	} `json:"diff"`
}

// TaskAnswer is the answer to a request about a task.
type TaskAnswer struct {
	Outcome  string   `json:"outcome"`
	Task     Task     `json:"task"`
	Warnings []string `json:"warnings"`
}

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
func (t *Task) Keys() []interlock.Key {
	keys := make([]interlock.Key, len(t.Claims))
	for i, c := range t.Claims {
		keys[i] = c.Key
	}
	return keys
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
		text = fmt.Sprintf("due in %s, attempt %d of %d", cli.Short(cli.Millis(t.Due)), t.Attempt+1, t.MaxAttempts)
	case t.Is(interlock.TaskWaiting) && t.Blocker != "":
		text = "waits for " + cli.Clean(string(t.Blocker))
		if t.Position > 0 {
			text += ", place " + strconv.Itoa(t.Position)
		}
		if t.ETA > 0 {
			text += ", about " + cli.Short(cli.Millis(t.ETA))
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
		text = fmt.Sprintf("done %s ago, in attempt %d", cli.Short(cli.Millis(t.Settled)), t.Attempt)
	case t.Is(interlock.TaskDead):
		text = fmt.Sprintf(
			"dead for %s, after %s", cli.Short(cli.Millis(t.Settled)), cli.Count(t.Attempt, "attempt", "attempts"),
		)
	case t.Is(interlock.TaskCancelled):
		text = fmt.Sprintf("cancelled %s ago", cli.Short(cli.Millis(t.Settled)))
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
