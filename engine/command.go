package engine

import (
	"time"

	"github.com/interlockdev/interlock"
)

// Time is the shard's clock in nanoseconds since the Unix epoch. It never goes
// back, and it stands still while the whole process was paused.
type Time int64

// Add gives the time d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub gives the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Caller is whom an effect is for. The engine keeps it and hands it back; it
// never looks inside. nil means that nobody listens.
type Caller any

// Command is what Step carries out. The commands are the types of this file.
type Command interface{ head() *Head }

// Head is what all commands share.
type Head struct {
	At        Time // never before an earlier command's
	From      Caller
	Namespace interlock.Namespace

	// Link numbers the connection that the command came over, so that Detach ends
	// the waits of that connection and no other. 0 when there is none.
	Link uint64

	// Session is the session in whose name the command comes; zero for none.
	Session interlock.SessionID

	// RequestID makes a mutating command repeatable: the same id gets the same
	// answer, and another body under it is refused. Its scope is the session, or
	// without one the namespace.
	RequestID string

	// Seq does the same for a session's stream, more cheaply: the client numbers
	// its commands 1, 2, 3, ... A command with Seq and RequestID is a mistake of
	// the caller. Acked says that the client has seen the first answer of every
	// command up to that number, so that they need not be remembered.
	Seq   uint64
	Acked uint64

	// Actor is who acts when it is not the session: the credential's principal. It
	// goes into the events for those who ask later who did it.
	Actor string
}

func (h *Head) head() *Head { return h }

// OpenSession starts a session. ID is 128 fresh random bits. TTL 0 means
// interlock.DefaultTTL. Answered by Done with Session set.
type OpenSession struct {
	Head  // Head.Session is not used
	ID    interlock.SessionID
	Agent string
	TTL   time.Duration
}

// Heartbeat says that Head.Session lives and renews all its leases. Progress,
// when not empty, replaces what is shown of it. Answered by Done with Session,
// and Losses: the leases that ended other than by the session's own will since
// the last heartbeat, and those in their soft tier. Not journaled.
type Heartbeat struct {
	Head
	Progress string
}

// CloseSession ends Head.Session, releases its leases and ends its waits.
type CloseSession struct{ Head }

// Attach makes Head.From the receiver of the pushes for Head.Session (Warned,
// Lost, and Granted for waits that were detached), until Detach or another
// Attach. It counts as a heartbeat. Not journaled.
type Attach struct{ Head }

// Detach says that nobody listens on Head.Link any more: waits of Head.Session
// that were attached over that link go on unattended, and so do its pushes.
// With Ticket set, only that one wait is meant. It has no answer.
type Detach struct {
	Head
	Ticket interlock.TicketID
}

// NoGrace asks for a lease without a grace period.
const NoGrace = time.Duration(-1)

// Acquire asks for Claims, all or nothing. Its first answer comes from this very
// step: Granted, Queued, Skipped or Refused, as it stands when the step is over:
// a wait that would have closed a cycle, and whose request is the victim, is
// Refused and was never Queued. Within the step its caller counts as listening.
// If the answer is Queued and Attach is set, a second one follows when the wait is
// over: Granted, or Refused.
type Acquire struct {
	Head
	ID      [16]byte // fresh random bits; the ticket's and the lease's id
	Agent   string   // for an anonymous holder; a session has its own
	Flow    string   // "" means "main"
	Purpose string
	Trace   string // W3C traceparent, for the log line of the ended lease

	Claims     []interlock.Claim // the engine keeps the slice
	TTL        time.Duration     // 0: the session's, else interlock.DefaultTTL
	Grace      time.Duration     // 0: interlock.DefaultGrace; NoGrace: none
	MaxHold    time.Duration     // 0: none
	Priority   int
	OnConflict interlock.OnConflict
	Attach     bool
}

// Poll asks after a place in line: Queued, Granted (an offer is claimed by it),
// or Refused when it is gone. With Attach, a Queued answer is followed by
// another when the wait is over; without, an earlier attachment over the same
// Link ends.
type Poll struct {
	Head
	Ticket interlock.TicketID
	Attach bool
}

// Leave gives up a place in line. If the request was granted in the meantime,
// the lease is released. Answered by Done.
type Leave struct {
	Head
	Ticket interlock.TicketID
}

// GetLease looks at a lease with its holder's eyes. It renews nothing.
type GetLease struct {
	Head
	Lease interlock.LeaseID
}

// Renew is a heartbeat for one anonymous lease; for a session's lease it is the
// session's heartbeat. Answered by Granted with the lease as it is now, or
// Refused when it is gone or in grace. Not journaled.
type Renew struct {
	Head
	Lease    interlock.LeaseID
	Progress string
}

// Release gives a lease back. Outcome is the holder's word for how it went; Note
// is handed to the next holders of its keys. Answered by Done, or Refused with
// the reason for which the lease is already gone.
type Release struct {
	Head
	Lease   interlock.LeaseID
	Outcome string
	Note    string
}

// Revoke takes back the lease with Fence that claims Key. It ends at once,
// without grace. Answered by Done, or Refused with CodeFenced when there is no
// such lease.
type Revoke struct {
	Head
	Key    interlock.Key
	Fence  interlock.Fence
	Reason string
}

// CheckFence asks whether a write under Fence to Key may go ahead: whether Fence
// is that of a live lease (grace included) with an exclusive claim on Key or an
// ancestor of it. A lease that only reads does not let its holder write. Done, or
// Refused with CodeFenced.
type CheckFence struct {
	Head
	Key   interlock.Key
	Fence interlock.Fence
}

// Tick lets time pass: it ends what is due at Head.At. It ends a bounded number
// of things a step, so the caller asks NextTimer again.
type Tick struct{ Head }

// Recover begins an owner's term after a replay. Every live session and anonymous
// lease gets a full new ttl from Head.At, spread a little so that the silent ones
// do not end all at once; everybody counts as not listening; fences jump by
// FenceJump (0, or a large number when the journal was copied or restored, and
// may have been written on elsewhere).
type Recover struct {
	Head
	Epoch     interlock.Epoch
	FenceJump uint64
}

// Limit changes what the engine admits for now; it is not journaled. LowSpace
// refuses what would take room in the journal (CodeNoSpace): new sessions, leases
// and waits. Draining refuses the same with CodeShuttingDown, and no waiter is
// granted any more; the next Recover grants them.
type Limit struct {
	Head
	LowSpace bool
	Draining bool
}
