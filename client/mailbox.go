package client

import (
	"time"

	"github.com/interlockdev/interlock"
)

// Message is what is sent to the single writer of a key: the worker of the queue that
// alone may change it.
type Message struct {
	Key      interlock.Key
	Kind     string // what is asked for, for writers that handle several kinds
	Body     any    // what encoding/json makes of it; nil: nothing; at most interlock.MaxPayloadBytes
	Purpose  string
	Priority int // among those to the same key; never ahead of an earlier one of the same sender

	Delay       time.Duration // it is not handled before
	Deadline    time.Duration // from now; if it is not settled by then it is dead; 0: none
	MaxAttempts int           // 0: the queue's

	// Approval, if set, has a person decide before it is handled at all.
	Approval *Question

	// ID makes it one message however often it is sent, as TaskSpec.ID says. The order
	// in which messages are kept is that of one sender: the session, or with IDs the
	// credential, else the agent.
	ID string
}
