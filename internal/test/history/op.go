package history

import (
	"fmt"
	"math"
	"time"

	"github.com/interlockdev/interlock"
)

// Kind is the kind of an operation.
type Kind string

const (
	Acquire    Kind = "acquire"     // a lease on Claims
	Renew      Kind = "renew"       // of Lease
	Release    Kind = "release"     // of Lease
	Look       Kind = "look"        // the holder of Key
	CheckFence Kind = "check_fence" // whether Fence is that of a live lease on Key
	Read       Kind = "read"        // documents at Keys, all of one moment
	Commit     Kind = "commit"      // Writes, if the versions of Reads are current and all of Leases live
	Submit     Kind = "submit"      // a task whose payload is the operation's ID
	Pull       Kind = "pull"        // a task of the queue
	Ack        Kind = "ack"         // the task under Lease is done; with its Writes
	Held       Kind = "held"        // whether Lease is held, as far as its holder's client knows
	Lapse      Kind = "lapse"       // of Lease by itself at some time from Call on, or never; it stays open
)

// Never is the return of an operation with an unknown outcome.
const Never = time.Duration(math.MaxInt64)

// Op is one operation of one client: the request, its time, and the answer.
type Op struct {
	Client string
	ID     string // its request id, the same however often it is sent
	Kind   Kind

	Call   time.Duration // when it was first sent, since the history began
	Return time.Duration // when it was answered, or Never
	// Sent is how often the server may have received it. If a request was sent once, the index
	// of the answer is that of the change; if it was sent again, it may be a later one.
	Sent int

	// The request.
	Claims []Claim         `json:",omitempty"`
	TTL    time.Duration   `json:",omitempty"` // of the lease that is asked for
	Wait   bool            `json:",omitempty"` // in line, if it is not free
	Lease  string          `json:",omitempty"`
	Key    string          `json:",omitempty"`
	Fence  interlock.Fence `json:",omitempty"`
	Keys   []string        `json:",omitempty"`
	Reads  []Version       `json:",omitempty"`
	Writes []Write         `json:",omitempty"`

	Answer `json:",omitempty"`
}

// Answer is the answer that a client received.
type Answer struct {
	Epoch interlock.Epoch
	Index interlock.Index // the answer is true at this index

	Code    interlock.Code    `json:",omitempty"` // of a refusal
	Granted *Grant            `json:",omitempty"` // of Acquire, Renew and Pull
	Holders []Holder          `json:",omitempty"` // of Look and of a refused Acquire
	More    int               `json:",omitempty"` // holders that are not listed
	Version interlock.Version `json:",omitempty"` // made by a commit; or of the snapshot that was read
	Docs    []Doc             `json:",omitempty"` // of Read, as asked
	Stale   []Version         `json:",omitempty"` // of a refused commit: the versions as they are
	Task    *Task             `json:",omitempty"` // of Submit and Pull
}

// Claim is a key with a mode.
type Claim struct {
	Key  string
	Mode interlock.Mode
}

// Grant is a lease as its holder is shown it.
type Grant struct {
	Lease  string
	Fence  interlock.Fence
	Claims []Claim
	TTL    time.Duration
}

// Holder is a lease as others are shown it. Request is the purpose that was given for it:
// by it the clients of a history tell which operation asked for it.
type Holder struct {
	Claim
	Fence   interlock.Fence
	Request string
}

// Version is the version of a document; 0 is that of nothing.
type Version struct {
	Key     string
	Version interlock.Version
}

// Write is one of a commit: the document becomes the request id of the commit, or is a
// counter to which something is added.
type Write struct {
	Key string
	Add int64 `json:",omitempty"`
}

// Doc is a document as it was read: written by the commit of a request id, or a counter.
type Doc struct {
	Version
	Request string `json:",omitempty"`
	Count   int64  `json:",omitempty"`
}

// Task is one as its submitter or its worker is shown it.
type Task struct {
	ID      string
	Request string // of its submission
	Attempt int
}

// Open reports whether the outcome is unknown.
func (o *Op) Open() bool { return o.Return == Never }

// OK reports whether the operation was carried out.
func (o *Op) OK() bool { return !o.Open() && o.Code == "" }

// exact reports whether the change was made at the very index of the answer.
func (o *Op) exact() bool { return o.Sent == 1 }

func (o *Op) String() string {
	told := "outcome unknown"
	if !o.Open() {
		told = fmt.Sprintf("told at %v: index %d of epoch %d %s", o.Return, o.Index, o.Epoch, o.Code)
	}
	return fmt.Sprintf("%s %s (called at %v, sent %d times, %s)", o.Kind, o.ID, o.Call, o.Sent, told)
}
