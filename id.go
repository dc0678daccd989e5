package interlock

import (
	"encoding/hex"
	"errors"
	"strings"
)

// A LeaseID, TicketID or SessionID is 128 random bits. It is its holder's secret: any caller
// that knows it may act on the lease, the place in line or the session. It is never shown to
// others; they see a short public name derived from a session's id.
//
// A ticket and the lease that it becomes share their bits and differ in their prefix only, so a
// client that lost the answer with its lease can still find it.
type (
	LeaseID   [16]byte
	TicketID  [16]byte
	SessionID [16]byte
	// An EffectID is the secret of an effect's claimer.
	EffectID [16]byte
	// A TaskID names a task. Unlike the others it is no secret within the namespace: a worker
	// proves by the lease that it works on the task.
	TaskID [16]byte
)

const (
	leasePrefix   = "l_"
	ticketPrefix  = "t_"
	sessionPrefix = "s_"
	effectPrefix  = "e_"
	taskPrefix    = "q_"
)

func (id LeaseID) String() string   { return leasePrefix + hex.EncodeToString(id[:]) }
func (id TicketID) String() string  { return ticketPrefix + hex.EncodeToString(id[:]) }
func (id SessionID) String() string { return sessionPrefix + hex.EncodeToString(id[:]) }
func (id EffectID) String() string  { return effectPrefix + hex.EncodeToString(id[:]) }
func (id TaskID) String() string    { return taskPrefix + hex.EncodeToString(id[:]) }

// IsZero reports whether the id names nothing.
func (id LeaseID) IsZero() bool   { return id == LeaseID{} }
func (id TicketID) IsZero() bool  { return id == TicketID{} }
func (id SessionID) IsZero() bool { return id == SessionID{} }
func (id EffectID) IsZero() bool  { return id == EffectID{} }
func (id TaskID) IsZero() bool    { return id == TaskID{} }

var errBadID = errors.New("not an id: want a prefix and 32 hexadecimal digits in lower case")

// ParseLeaseID parses the text of LeaseID.String.
func ParseLeaseID(s string) (LeaseID, error) {
	b, err := parseID(s, leasePrefix)
	return LeaseID(b), err
}

// ParseTicketID parses the text of TicketID.String.
func ParseTicketID(s string) (TicketID, error) {
	b, err := parseID(s, ticketPrefix)
	return TicketID(b), err
}

// ParseSessionID parses the text of SessionID.String.
func ParseSessionID(s string) (SessionID, error) {
	b, err := parseID(s, sessionPrefix)
	return SessionID(b), err
}

// ParseEffectID parses the text of EffectID.String.
func ParseEffectID(s string) (EffectID, error) {
	b, err := parseID(s, effectPrefix)
	return EffectID(b), err
}

// ParseTaskID parses the text of TaskID.String.
func ParseTaskID(s string) (TaskID, error) {
	b, err := parseID(s, taskPrefix)
	return TaskID(b), err
}

func parseID(s, prefix string) (id [16]byte, err error) {
	if len(s) != len(prefix)+32 || s[:len(prefix)] != prefix {
		return id, errBadID
	}
	// Each id has one spelling: the digits of String, which are lower-case.
	if _, err := hex.Decode(id[:], []byte(s[len(prefix):])); err != nil || strings.ContainsAny(s, "ABCDEF") {
		return [16]byte{}, errBadID
	}
	return id, nil
}
