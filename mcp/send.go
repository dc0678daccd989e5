package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/interlockdev/interlock/internal/api"
)

type sendArguments struct {
	To    string          `json:"to"`
	Queue string          `json:"queue"`
	Kind  string          `json:"kind"`
	Body  json.RawMessage `json:"body"`
	Keys  []string        `json:"keys"`
	InS   int64           `json:"in_s"`
	WaitS *int            `json:"wait_s"`
}

// send is the tool that hands work on.
func send(v *visit) (*answer, error) {
	var in sendArguments
	if err := v.read(&in); err != nil {
		return nil, err
	}
	wait, err := v.waitFor(in.WaitS, 0)
	switch {
	case err != nil:
		return nil, err
	case (in.To == "") == (in.Queue == ""):
		return nil, misuse("send needs either to, the key whose writer gets the message, or queue, the queue of the task.")
	case in.Kind == "":
		return nil, v.required("kind", "the kind of work, for the worker")
	case in.To != "" && len(in.Keys) > 0:
		return nil, misuse("The argument keys of send is for tasks: the writer of a key holds that key already.")
	case in.InS < 0:
		return nil, misuse("The argument in_s of send cannot be negative.")
	}
	work := api.Work{Kind: in.Kind, Delay: in.InS * 1000}
	var task api.Task
	if in.To != "" {
		var sent api.Sent
		message := api.Request{Method: http.MethodPost, Path: keyPath("mailbox", in.To)}
		_, err = v.inSession(message, &sent, func(session, name string) any {
			return api.SendRequest{
				Sender:      api.Sender{Agent: name, Session: session, Flow: v.flow},
				MessageBody: api.MessageBody{Payload: in.Body, Work: work},
			}
		})
		task = sent.Message
	} else {
		var submitted api.TaskAnswer
		submit := api.Request{Method: http.MethodPost, Path: "/v1/tasks"}
		_, err = v.inSession(submit, &submitted, func(session, name string) any {
			return api.SubmitRequest{
				Sender: api.Sender{Agent: name, Session: session, Flow: v.flow},
				TaskRequest: api.TaskRequest{
					Queue: in.Queue, Claims: claimsOf(in.Keys, "", 0), Payload: in.Body, Work: work,
				},
			}
		})
		task = submitted.Task
	}
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		return v.followTask(task.ID, wait)
	}
	return v.task(&task), nil
}

// followTask waits for the end of a task or a message.
func (v *visit) followTask(id string, wait time.Duration) (*answer, error) {
	until := v.began.Add(wait)
	for slice := time.Duration(0); ; {
		var view api.TaskView
		_, err := v.do(api.Request{
			Method: http.MethodGet, Path: "/v1/tasks/" + url.PathEscape(id), Wait: slice,
			Query: url.Values{"wait_ms": {strconv.FormatInt(slice.Milliseconds(), 10)}},
		}, &view)
		if err != nil {
			return nil, err
		}
		slice = min(time.Until(until), reportEvery)
		if settled(view.Task.State) || slice <= 0 {
			return v.task(&view.Task), nil
		}
		v.report(stands(&view.Task))
	}
}

func (v *visit) cancelTask(id string) (*answer, error) {
	var done api.TaskAnswer
	_, err := v.do(api.Request{
		Method: http.MethodPost, Path: "/v1/tasks/" + url.PathEscape(id) + "/cancel", Body: api.ChangeTaskRequest{}, ID: v.id,
	}, &done)
	if err != nil {
		return nil, err
	}
	return v.task(&done.Task), nil
}

func settled(state api.TaskState) bool {
	return state == "done" || state == "dead" || state == "cancelled"
}

// stands is how a task stands, in a sentence.
func stands(t *api.Task) string {
	switch t.State {
	case "done":
		return "It is done."
	case "dead":
		return "It failed, and is not tried again."
	case "cancelled":
		return "It was cancelled."
	case "running":
		return "A worker is doing it."
	case "asking":
		return "It waits for a person's answer."
	case "scheduled":
		return fmt.Sprintf("It may run in %s.", span(t.Due))
	}
	if t.Blocker != "" {
		return fmt.Sprintf("It waits for %s at queue position %d.", clip(string(t.Blocker), keyShare), t.Position)
	}
	return "It waits for a worker."
}

// task is the answer about a task or a message.
func (v *visit) task(t *api.Task) *answer {
	a := &answer{
		Outcome: string(t.State), Ticket: t.ID, Message: stands(t), Result: cutJSON(t.Result, resultShare), about: t.ID,
		quotes: len(t.Result) > 0,
	}
	if !settled(t.State) {
		a.Message += " Do other work, then call wait with this ticket."
	}
	if t.Reason != "" {
		a.Notes = []note{{Agent: "worker", Text: clip(t.Reason, noteShare)}}
	}
	return a
}
