package client

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Config holds the server's addresses and this client's identity. The zero value of each field
// works, except that Dial needs Addrs.
type Config struct {
	// Addrs are the session addresses, host:port, of the servers of one cluster. They are
	// tried in order, and the active server among them is used; after a failure, and after the answer
	// of a standby, the next one is tried at once. A name with several addresses counts as
	// several servers. If a server relays the session to another one of them, which owns the shard
	// of the namespace, the session moves there; an address that is not here is never used.
	// Before an address, "grpc://" has the session carried over gRPC, for proxies
	// that let nothing else through: that is slower.
	//
	// With several servers heartbeats come every two seconds at least, and a server from which nothing has come
	// for a second is asked whether it is there. One that has come to stand still is left for the next one within
	// 2.5 s, and within six over gRPC. Dial asks the next address beside one that has been silent for 1.5 s. An
	// attempt to connect again gets 1.5 s, twice that after each that was too short, and at most a quarter of the
	// shortest ttl; a server that gave no answer is passed over for 5 s. So a call that is under way when its
	// server is lost ends some 2.5 s after the death or, if that is later, after another one has taken over. A
	// lease of 10 s or more outlives a fail-over.
	Addrs []string

	// TLS encrypts the connection. nil means plain text, which is for loopback
	// and for networks that encrypt by themselves: a credential would travel in
	// clear text otherwise.
	TLS *tls.Config

	// Credential is the bearer credential. "" is accepted by servers without
	// credentials, which listen on loopback only.
	Credential string

	// Namespace is the tenant. "" means the credential's, else "default".
	Namespace interlock.Namespace

	// Agent is the name that other agents and people see, at most
	// interlock.MaxNameBytes bytes.
	Agent string

	// SessionTTL is how long the session outlives its last heartbeat: from interlock.MinTTL to
	// interlock.MaxTTL. It is the maximum of its leases' ttl, and their ttl if neither a request nor
	// a key's pattern names one. 0 means interlock.DefaultTTL, and as long as the longest ttl of its
	// leases. A short one finds dead agents sooner; too short a one loses leases to a pause of the
	// network or the garbage collector.
	SessionTTL time.Duration

	// Seat is a file that stands for this process across restarts, such as /var/lib/billing/seat; "" for none. It
	// has the id of the session, a secret. If the process is killed, the next one with the same seat takes its
	// leases over as it asks for them: at once, ahead of the line, each under a new fence. That holds while the
	// session before lives, for SessionTTL after its last heartbeat; a lease that is not asked for ends with it. Two
	// processes that run have never one seat: the second gets an error. Close leaves nothing to be taken over.
	Seat string

	// RetryFor bounds the retries of calls: from the beginning of an outage while no server
	// answers, from the call while the server reports that it is overloaded or shutting down. It
	// is checked after each attempt, so a call may last longer by one attempt and the pause
	// before it, of up to 5 s; only its context bounds a call exactly. 0 means that only the
	// context bounds it.
	RetryFor time.Duration
}

// Dialer makes a connection. It returns an *interlock.Error when a server
// answered and refused, and any other error when none did.
type Dialer func(ctx context.Context, hello proto.Hello) (proto.ClientLink, error)

// Request is the request of Acquire. One of Keys, Claims and Prefix is required.
type Request struct {
	// Keys are claimed in Mode (zero: see [interlock.Claim]), all or nothing.
	Keys []interlock.Key
	Mode interlock.Mode
	// Claims are claimed as they are, together with Keys. Those of permits, barriers
	// and members have a count: interlock.Claim{Key: "model:opus", Mode:
	// interlock.Permits, Count: 3}.
	Claims []interlock.Claim

	// Any makes Keys and Claims alternatives: exactly one of them is granted, the first that is
	// free or becomes free. Lease.Key returns it.
	Any bool
	// Prefix asks for any one key of the pools with keys that begin with it, such as "gpu:",
	// exclusively. Keys and Claims are then empty.
	Prefix string

	// OnConflict is the action when the request cannot be granted at once. The zero value
	// refuses with code "held". With interlock.Wait and interlock.Preempt the context bounds
	// the wait; the latter also asks the holders to yield. With interlock.Skip Acquire returns
	// ErrSkipped.
	OnConflict interlock.OnConflict

	Flow    string // "": see the package's text about flows
	Purpose string // for people and other agents, at most interlock.MaxPurposeBytes
	Trace   string // W3C traceparent

	// AsOf is the version that the caller has read of the documents at the keys: Lease.Packet
	// then reports later changes. 0: changes during the wait.
	AsOf interlock.Version
	// Documents asks for the documents at the keys together with the lease: Lease.Documents.
	Documents bool

	// Terms are for how long and in which group the keys are claimed, as in Request{Terms:
	// interlock.Terms{MaxHold: time.Hour}}. A lease with Stall ends when SetProgress reports
	// nothing new for so long. A request with MaxWait leaves the line after so long, with code
	// "wait_limit".
	interlock.Terms
	Priority int // from -interlock.MaxPriority to interlock.MaxPriority

	// OnQueued is called when the request stands in line, with the place and the blockers, and
	// again after a reconnect. It must not block.
	OnQueued func(ticket interlock.Ticket, holders []interlock.Holder)

	member *Member // see Join
}

// NoGrace asks for a lease without a grace period.
const NoGrace = interlock.NoGrace

// Outcome is a release's report to the next holders.
type Outcome struct {
	Outcome string // the holder's word for how it went, such as "done"
	Note    string // cut off at interlock.MaxNoteBytes
}
