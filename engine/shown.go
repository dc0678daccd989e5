package engine

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// Descriptions of tasks and log entries, with reasons that package prose puts in words.
type (
	Task     = store.TaskView
	Attempt  = store.AttemptView
	Approval = store.ApprovalView
	LogEntry = store.LogEntryView
)

// Assignment is a task that is assigned to a worker. Its Task hides the one in interlock.Assignment,
// which is empty.
type Assignment struct {
	interlock.Assignment
	Task Task
}

// SideEffect describes an external action that is claimed once. Its Reason hides the one in
// interlock.Effect, which is empty.
type SideEffect struct {
	interlock.Effect
	Reason *message.Text // of an unknown one: the known facts
}

// LeaseRow is a lease in a list. Others see it without its id. Text in it came from agents.
type LeaseRow struct {
	ID           interlock.LeaseID // a secret of its holder
	Request      uint64            // its number, the same in all its events
	Agent        string
	Session      string // public name, "" for an anonymous holder
	Flow         string
	Principal    string // "" without credentials
	Purpose      string
	Progress     string
	Claims       []interlock.Claim
	Fence        interlock.Fence
	Liveness     interlock.Liveness
	Held         time.Duration
	ExpiresIn    time.Duration
	HeartbeatAge time.Duration
	EndedBy      string // why it is in grace, or closed
	Parking      *interlock.ParkStatus
	Task         interlock.TaskID // that the lease is an attempt at
}

// TicketRow is a request in line. Others see it without its id. Text in it came from agents.
type TicketRow struct {
	ID        interlock.TicketID // a secret of its waiter
	Request   uint64             // its number, the same in all its events
	Agent     string
	Session   string
	Flow      string
	Principal string // "" without credentials
	Purpose   string
	Claims    []interlock.Claim
	Any       bool // one of the claims is granted
	Priority  int  // with which it waits: its own, or one that it inherits
	Position  int  // 0: it has an offer, or waits for an agent
	Length    int
	Waited    time.Duration
	ETA       time.Duration
	Offered   bool
	On        *FlowRef // the party that a declared wait is for
}

// SessionWork is all that a session has: its leases, also parked ones, and its requests in the queue, in the order of
// their numbers. A client that has lost its memory finds here what it holds.
type SessionWork struct {
	Leases  []LeaseRow
	Tickets []TicketRow
}
