package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
)

// task is a task in the form of the HTTP API.
type task struct {
	ID       string          `json:"id"`
	Queue    string          `json:"queue"`
	Kind     string          `json:"kind"`
	Claims   []claim         `json:"claims"`
	Payload  json.RawMessage `json:"payload"`
	Purpose  string          `json:"purpose"`
	Group    string          `json:"group"`
	Priority int             `json:"priority"`
	State    string          `json:"state"`
	party
	Principal   string          `json:"principal"`
	Age         int64           `json:"age_ms"`
	Due         int64           `json:"due_in_ms"`
	Deadline    int64           `json:"deadline_in_ms"`
	Attempt     int             `json:"attempt"`
	MaxAttempts int             `json:"max_attempts"`
	Attempts    []attempt       `json:"attempts"`
	Position    int             `json:"position"`
	ETA         int64           `json:"eta_ms"`
	Blocker     interlock.Key   `json:"blocker"`
	Barred      bool            `json:"barred"`
	Approval    *approval       `json:"approval"`
	Result      json.RawMessage `json:"result"`
	Settled     int64           `json:"settled_ms"`
	Reason      string          `json:"reason"`
}

// attempt is one go at a task that has ended.
type attempt struct {
	Number int `json:"number"`
	party
	Fence   interlock.Fence `json:"fence,string"`
	EndedBy string          `json:"ended_by"`
	Reason  string          `json:"reason"`
	Held    int64           `json:"held_ms"`
	Age     int64           `json:"age_ms"`
}

// approval is a question to a person, and the answer.
type approval struct {
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
		packet
		Stale []change `json:"stale"`
	} `json:"packet"`
}

// change is a document that has changed since it was read.
type change struct {
	Key  interlock.Key `json:"key"`
	Then document      `json:"then"`
	Now  document      `json:"now"`

	Between []document `json:"between"`
	Left    int        `json:"more_between"`

	Diff struct {
		Patch json.RawMessage `json:"patch"`
		Text  string          `json:"text"`
	} `json:"diff"`
}

type taskAnswer struct {
	Outcome  string   `json:"outcome"`
	Task     task     `json:"task"`
	Warnings []string `json:"warnings"`
}

func taskPath(id, action string) string {
	path := "/v1/tasks/" + url.PathEscape(id)
	if action != "" {
		path += "/" + action
	}
	return path
}

// is reports whether the task stands there.
func (t *task) is(s interlock.TaskState) bool { return t.State == s.String() }

// settled reports whether it is over with the task.
func (t *task) settled() bool {
	return t.is(interlock.TaskDone) || t.is(interlock.TaskDead) || t.is(interlock.TaskCancelled)
}

// keys are those that it claims.
func (t *task) keys() []interlock.Key {
	keys := make([]interlock.Key, len(t.Claims))
	for i, c := range t.Claims {
		keys[i] = c.Key
	}
	return keys
}

// what the task is for, and on which keys, in a few words.
func (t *task) what() string {
	words := make([]string, 0, 3)
	for _, word := range []string{t.Kind, t.Purpose} {
		if word = clean(word); word != "" {
			words = append(words, word)
		}
	}
	if len(t.Claims) > 0 {
		words = append(words, clean(joinKeys(t.keys(), ", ")))
	}
	return orDash(strings.Join(words, ", "))
}

// tries is the number of the attempt, and of how many.
func (t *task) tries() string {
	return strconv.Itoa(t.Attempt) + "/" + strconv.Itoa(t.MaxAttempts)
}

// stands returns the task's state, and why.
func (t *task) stands() string {
	text, reason := t.place(), clean(t.Reason)
	switch {
	case reason == "" || t.is(interlock.TaskDone):
		return text
	case t.settled():
		return text + ": " + reason
	}
	return text + "; the last one failed: " + reason
}

// place returns the task's state.
func (t *task) place() string {
	text := clean(t.State)
	switch {
	case t.is(interlock.TaskScheduled):
		text = fmt.Sprintf("due in %s, attempt %d of %d", short(ms(t.Due)), t.Attempt+1, t.MaxAttempts)
	case t.is(interlock.TaskWaiting) && t.Blocker != "":
		text = "waits for " + clean(string(t.Blocker))
		if t.Position > 0 {
			text += ", place " + strconv.Itoa(t.Position)
		}
		if t.ETA > 0 {
			text += ", about " + short(ms(t.ETA))
		}
	case t.is(interlock.TaskWaiting) && t.Barred:
		text = "waits for a worker that may hold it: no idle one may"
	case t.is(interlock.TaskWaiting):
		text = "waits for a worker"
	case t.is(interlock.TaskRunning):
		text = fmt.Sprintf("is running, attempt %d of %d", t.Attempt, t.MaxAttempts)
	case t.is(interlock.TaskAsking):
		text = "waits for a person's word"
	case t.is(interlock.TaskDone):
		text = fmt.Sprintf("done %s ago, in attempt %d", short(ms(t.Settled)), t.Attempt)
	case t.is(interlock.TaskDead):
		text = fmt.Sprintf("dead for %s, after %s", short(ms(t.Settled)), count(t.Attempt, "attempt", "attempts"))
	case t.is(interlock.TaskCancelled):
		text = fmt.Sprintf("cancelled %s ago", short(ms(t.Settled)))
	}
	return text
}

// next returns what can be done about the task in its state.
func (t *task) next() string {
	id := clean(t.ID)
	switch {
	case t.is(interlock.TaskScheduled):
		return "`interlock task reschedule " + id + "` has it due at once"
	case t.is(interlock.TaskWaiting) && t.Blocker != "":
		return "`interlock why " + quote(clean(string(t.Blocker))) + "` shows its blockers"
	case t.is(interlock.TaskWaiting) && t.Barred && len(t.Claims) > 0:
		return "`interlock why " + quote(clean(string(t.keys()[0]))) + "` shows the rule that keeps the idle workers from it"
	case t.is(interlock.TaskWaiting) && t.Barred && t.Agent != "":
		return "`interlock why --agent " + quote(clean(t.Agent)) + "` shows the rule that keeps the idle workers from it"
	case t.is(interlock.TaskWaiting):
		return "`interlock task work " + quote(clean(t.Queue)) + " -- COMMAND` works for its queue"
	case t.is(interlock.TaskAsking):
		return "answer with `interlock approve " + id + "` and --yes or --no"
	case t.is(interlock.TaskDead):
		return "`interlock task replay " + id + "` tries it again, `interlock task discard " + id + "` forgets it"
	case t.is(interlock.TaskCancelled):
		return "`interlock task replay " + id + "` takes it up again"
	}
	return ""
}

// stateColour returns the colour of a state in a table.
func (t *task) stateColour() colour {
	switch {
	case t.is(interlock.TaskRunning), t.is(interlock.TaskDone):
		return green
	case t.is(interlock.TaskAsking):
		return yellow
	case t.is(interlock.TaskDead):
		return red
	}
	return plain
}
