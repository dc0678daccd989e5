package api

import (
	"encoding/json"

	"github.com/interlockdev/interlock"
)

// The values that fields of bodies and answers have in common. Each is an alias: it names a
// schema of the API's description, and is an ordinary value to a Go program. A directive
// //schema:NAME VALUE adds a member to the schema.

// Milliseconds is a duration in milliseconds.
//
//schema:min 0
type Milliseconds = int64

// Key is a path with '/' between its segments, such as repo:web/src/auth.ts: at most 512 bytes
// and 16 segments, in Unicode normal form C.
//
//schema:min 1
//schema:max MaxKeyBytes
type Key = interlock.Key

// Mode is the access that a claim wants to its key. permits, barrier and member come with a
// count: permits, parties or parts.
//
//schema:enum exclusive,shared,intent-exclusive,intent-shared,shared+intent-exclusive,permits,barrier,member
type Mode = string

// LeaseID is the lease's id: its holder's secret.
//
//schema:pattern ^l_[0-9a-f]{32}$
type LeaseID = string

// TicketID is the ticket's id: its waiter's secret. It differs from the lease's id in its prefix
// only.
//
//schema:pattern ^t_[0-9a-f]{32}$
type TicketID = string

// SessionID is the session's id: its owner's secret.
//
//schema:pattern ^s_[0-9a-f]{32}$
type SessionID = string

// Decimal is a counter as a decimal string, because JSON numbers lose precision above 2^53.
//
//schema:pattern ^(0|[1-9][0-9]*)$
type Decimal = string

// Progress is how far the work is, shown to waiters: a text, or an object, which is kept as its
// text. 512 bytes at most.
//
//schema:type string,object
type Progress = json.RawMessage

// Priority is how urgent a request is. Each step counts as 10 s of waiting.
//
//schema:min -MaxPriority
//schema:max MaxPriority
type Priority = int

// EffectID is the claimed effect's id: its claimer's secret.
//
//schema:pattern ^e_[0-9a-f]{32}$
type EffectID = string

// TaskID is the task's id. It is no secret within the namespace.
//
//schema:pattern ^q_[0-9a-f]{32}$
type TaskID = string
