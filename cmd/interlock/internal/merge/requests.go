package merge

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// requests is what the commands about a line ask the server, over HTTP: a session needs more rights than to read.
type requests struct{ api *cli.API }

// get reads an answer.
func (r *requests) get(ctx context.Context, path string, query url.Values, v any) error {
	_, answer, err := r.api.Do(ctx, cli.Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return err
	}
	return cli.Decode(answer, v)
}

// post sends a request that may be repeated.
func (r *requests) post(ctx context.Context, path string, body, v any) error {
	_, answer, err := r.api.Insist(
		ctx, cli.Request{Method: http.MethodPost, Path: path, Body: body, ID: cli.FreshID(), Again: true}, false,
	)
	if err != nil || v == nil {
		return err
	}
	return cli.Decode(answer, v)
}

// Document reads the document of a key: whether there is one, and its body.
func (r *requests) Document(ctx context.Context, key interlock.Key) (interlock.Document, error) {
	var got api.Documents
	if err := r.get(ctx, "/v1/state", url.Values{"key": {string(key)}, "values": {"true"}}, &got); err != nil {
		return interlock.Document{}, err
	}
	if len(got.Documents) != 1 || got.Documents[0].Truncated {
		return interlock.Document{}, fmt.Errorf("the server does not answer with the document %s", cli.Clean(string(key)))
	}
	d := &got.Documents[0]
	doc := interlock.Document{
		Key: key, Version: d.Version, Absent: d.Absent, Body: d.Value, Agent: d.Agent, Principal: d.Principal,
	}
	if d.Age != nil {
		doc.Age = time.Duration(*d.Age) * time.Millisecond
	}
	return doc, nil
}

// Task reads a task: its state, author, age, payload and result.
func (r *requests) Task(ctx context.Context, id interlock.TaskID) (interlock.Task, error) {
	var got api.TaskView
	if err := r.get(ctx, view.TaskPath(id.String(), ""), nil, &got); err != nil {
		return interlock.Task{}, err
	}
	return taskOf(&got.Task)
}

// Tasks lists the tasks of a queue in a state, without their payloads.
func (r *requests) Tasks(ctx context.Context, f client.TaskFilter) iter.Seq2[interlock.Task, error] {
	return func(yield func(interlock.Task, error) bool) {
		query := url.Values{"queue": {f.Queue}}
		if f.State != 0 {
			query.Set("state", f.State.String())
		}
		for {
			var page api.TaskList
			if err := r.get(ctx, "/v1/tasks", query, &page); err != nil {
				yield(interlock.Task{}, err)
				return
			}
			for i := range page.Tasks {
				if t, err := taskOf(&page.Tasks[i]); !yield(t, err) || err != nil {
					return
				}
			}
			if page.Cursor == "" {
				return
			}
			query.Set("cursor", page.Cursor)
		}
	}
}

func taskOf(t *api.Task) (interlock.Task, error) {
	id, err := interlock.ParseTaskID(t.ID)
	state, known := interlock.ParseTaskState(string(t.State))
	if err == nil && !known && t.State != "" {
		err = fmt.Errorf(
			"the state %s of a task is unknown: is this client older than the server?", cli.Quote(string(t.State)),
		)
	}
	return interlock.Task{
		ID: id, Queue: t.Queue, State: state, Payload: t.Payload, Result: t.Result, Purpose: t.Purpose, Agent: t.Agent,
		Principal: t.Principal, DoneBy: t.DoneBy, Blocker: interlock.Key(t.Blocker),
		Priority: t.Priority,
		Age:      time.Duration(t.Age) * time.Millisecond, Settled: time.Duration(t.Settled) * time.Millisecond,
	}, err
}

// CancelTask cancels a task that no worker has.
func (r *requests) CancelTask(ctx context.Context, id interlock.TaskID, reason string) (interlock.Task, error) {
	var got api.TaskAnswer
	if err := r.post(ctx, view.TaskPath(id.String(), "cancel"), map[string]string{"reason": reason}, &got); err != nil {
		return interlock.Task{}, err
	}
	return taskOf(&got.Task)
}

// Put writes a document of JSON, whatever was there.
func (r *requests) Put(ctx context.Context, key interlock.Key, body []byte) (err error) {
	for range 5 { // others may write it meanwhile
		err = r.replace(ctx, key, api.WriteRequest{Put: json.RawMessage(body)})
		if !cli.IsRefused(err, interlock.CodeStale) {
			break
		}
	}
	return err
}

// replace writes a document in place of the one that is there now.
func (r *requests) replace(ctx context.Context, key interlock.Key, w api.WriteRequest) error {
	d, err := r.Document(ctx, key)
	if err != nil {
		return err
	}
	read := api.ReadRequest{Key: api.Key(key), Absent: d.Absent}
	if !d.Absent {
		read.Version = &d.Version
	}
	w.Key = api.Key(key)
	commit := &api.CommitRequest{Agent: cli.OwnName()}
	commit.Reads, commit.Writes = []api.ReadRequest{read}, []api.WriteRequest{w}
	return r.post(ctx, "/v1/commits", commit, nil)
}

// queue reads a queue.
func (r *requests) queue(ctx context.Context, name string) (*api.QueueStatus, error) {
	var got api.QueueView
	err := r.get(ctx, view.QueuePath(name, ""), nil, &got)
	return &got.Queue, err
}
