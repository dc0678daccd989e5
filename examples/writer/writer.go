package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// stock is the state of a key, and units the body of a message to it.
type (
	stock struct {
		Left int `json:"left"`
	}
	units struct {
		N int `json:"n"`
	}
	reply struct {
		Done bool   `json:"done"`
		Left int    `json:"left"`
		Next string `json:"next,omitempty"` // of a refusal: what to do
	}
)

// decide is all that the writer knows. It has no clock and no I/O.
func decide(s stock, kind string, u units) (stock, reply) {
	switch {
	case u.N <= 0:
		return s, reply{Left: s.Left, Next: "name a number above 0"}
	case kind == "deliver":
		s.Left += u.N
	case kind != "reserve":
		return s, reply{Left: s.Left, Next: "send deliver or reserve"}
	case u.N > s.Left:
		return s, reply{Left: s.Left, Next: fmt.Sprintf("ask for %d at most, or wait for a delivery", s.Left)}
	default:
		s.Left -= u.N
	}
	return s, reply{Done: true, Left: s.Left}
}

// handle decides one message. A refusal is a reply; an error means that nothing could be
// decided, and the message is tried again.
func handle(_ context.Context, job *client.Job) (client.Done, error) {
	doc := job.Document(job.Task().Claims[0].Key)
	var s stock
	if !doc.Absent {
		if err := json.Unmarshal(doc.Body, &s); err != nil {
			return client.Done{}, err
		}
	}
	var u units
	if err := job.Decode(&u); err != nil {
		return client.Done{Result: reply{Left: s.Left, Next: `send {"n": 1}`}}, nil
	}
	s, r := decide(s, job.Task().Kind, u)
	body, err := json.Marshal(s)
	return client.Done{Result: r, Reads: client.Seen(doc), Writes: []interlock.Write{client.Put(doc.Key, body)}}, err
}
