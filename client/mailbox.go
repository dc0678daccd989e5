package client

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Message is a message to the single writer of a key: the worker of the queue that alone may
// change it.
type Message struct {
	Key      interlock.Key
	Kind     string // the kind, for writers that handle several kinds
	Body     any    // marshalled by encoding/json; nil: nothing; at most interlock.MaxPayloadBytes
	Purpose  string
	Priority int // among those to the same key; never ahead of an earlier one of the same sender

	Delay       time.Duration // it is not handled before
	Deadline    time.Duration // from now; if it is not settled by then it is dead; 0: none
	MaxAttempts int           // 0: the queue's

	// Approval, if set, has a person decide before it is handled at all.
	Approval *Question

	// ID makes it one message however often it is sent, as TaskSpec.ID does. The order in which
	// messages are kept is that of one sender: the session, or with IDs the credential, else
	// the agent.
	ID string
}

// Send puts a message into the mailbox of its key, and returns it as it stands: it is
// durable then, and the key's writer will have it. Client.Await waits for the reply.
func (c *Client) Send(ctx context.Context, m Message) (interlock.Task, error) {
	spec, err := m.wire()
	if err != nil {
		return interlock.Task{}, err
	}
	return c.submitted(ctx, spec, m.ID, false)
}

// Ask sends a message and waits for the writer's reply. If the message is dead or
// cancelled, the error is a *TaskError.
//
// The wait counts as one of the flow of ctx: if the writer cannot handle the message before
// this flow releases its leases, that is a deadlock, and one of the calls in the cycle returns
// the error, with CodeDeadlock and the cycle: this call, or the caller that waits for this flow
// while it handles the message. If it is this call, the message is in the mailbox nevertheless,
// and is handled when that is over.
func (c *Client) Ask(ctx context.Context, m Message) (json.RawMessage, error) {
	spec, err := m.wire()
	if err != nil {
		return nil, err
	}
	if m.ID == "" {
		task, err := ended(c.submitted(ctx, spec, "", true))
		return task.Result, err
	}
	// It belongs to no session, and neither does a wait for it: this session waits by itself.
	sent, err := c.submitted(ctx, spec, m.ID, false)
	if err != nil {
		return nil, err
	}
	task, err := c.Await(ctx, sent.ID)
	return task.Result, err
}

func (m *Message) wire() (interlock.TaskSpec, error) {
	body, err := encode(m.Body)
	return interlock.TaskSpec{
		Message: true, Key: m.Key, Kind: m.Kind, Payload: body, Purpose: m.Purpose, Priority: clampPriority(m.Priority),
		Delay: m.Delay, Deadline: m.Deadline, MaxAttempts: m.MaxAttempts, Ask: cloneQuestion(m.Approval),
	}, err
}

// Log reads the log of a key that has a single writer, from the entry with the number from
// on, or from the oldest that is kept. It fetches more as it goes, and ends at the present
// end of the log. After an error it ends.
func (c *Client) Log(ctx context.Context, key interlock.Key, from uint64) iter.Seq2[interlock.LogEntry, error] {
	return func(yield func(interlock.LogEntry, error) bool) {
		for {
			if ctx.Err() != nil {
				yield(interlock.LogEntry{}, context.Cause(ctx))
				return
			}
			k := c.newCall(proto.OpReadLog)
			k.op.Key, k.op.Task = key, &proto.TaskOp{From: from}
			got, err := c.do(ctx, k, "the log of "+string(key))
			if err != nil {
				yield(interlock.LogEntry{}, err)
				return
			}
			for _, entry := range got.Log {
				entry.Body, entry.Reply = slices.Clone(entry.Body), slices.Clone(entry.Reply)
				entry.Document.Body = slices.Clone(entry.Document.Body)
				if !yield(entry, nil) {
					return
				}
				from = entry.Seq + 1
			}
			if !got.More || len(got.Log) == 0 {
				return
			}
		}
	}
}
