package client

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Config says where the server is and who we are. The zero value of each field
// works, except that Dial needs Addrs.
type Config struct {
	// Addrs are host:port addresses of gRPC doors. They are tried in order, and
	// the first that answers is used; after a failure the next one is.
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

	// SessionTTL is how long the session outlives its last heartbeat, and the
	// default ttl of its leases: from interlock.MinTTL to interlock.MaxTTL. 0 means
	// interlock.DefaultTTL. A short one finds dead agents sooner; too short a
	// one loses leases to a pause of the network or the garbage collector.
	SessionTTL time.Duration

	// RetryFor bounds how long one call goes on trying while no server answers,
	// or the server says that it is overloaded or shutting down. 0 means as long
	// as the call's context allows.
	RetryFor time.Duration
}

// Dialer makes a connection. It returns an *interlock.Error when a server
// answered and refused, and any other error when none did.
type Dialer func(ctx context.Context, hello proto.Hello) (proto.ClientLink, error)

// Request is what Acquire asks for. Keys or Claims is required.
type Request struct {
	// Keys are claimed in Mode (zero: exclusive), all or nothing.
	Keys []interlock.Key
	Mode interlock.Mode
	// Claims are claimed as they are, together with Keys.
	Claims []interlock.Claim

	// OnConflict says what to do when it cannot be granted at once. The zero
	// value refuses with code "held". With interlock.Wait the context bounds the
	// wait; with interlock.Skip Acquire returns ErrSkipped.
	OnConflict interlock.OnConflict

	Flow     string        // "": see the package's text about flows
	Purpose  string        // for people and other agents, at most interlock.MaxPurposeBytes
	Trace    string        // W3C traceparent
	TTL      time.Duration // 0: the session's
	Grace    time.Duration // 0: interlock.DefaultGrace; NoGrace: none
	MaxHold  time.Duration // 0: no cap
	Priority int           // from -interlock.MaxPriority to interlock.MaxPriority

	// OnQueued is called when the request stands in line, with the place and
	// whoever is in the way, and again after a reconnect. It must not block.
	OnQueued func(ticket interlock.Ticket, holders []interlock.Holder)
}

// NoGrace asks for a lease without a grace period.
const NoGrace = time.Duration(-1)

// Outcome is what a release tells the next holders.
type Outcome struct {
	Outcome string // the holder's word for how it went, such as "done"
	Note    string // at most interlock.MaxNoteBytes
}
