package engine

// Outcome is the kind of an effect.
type Outcome uint8

const (
	// Granted: Lease is set.
	Granted Outcome = 1 + iota
	// Queued: Ticket and Conflict are set. Another answer follows if the wait is attached.
	Queued
	// Skipped: another holder already does it; Conflict is set.
	Skipped
	// Done: it was carried out. Session is set for the commands about sessions.
	Done
	// Refused: Code and Message are set, and the conflict where there is one.
	Refused
	// Warned is a push: Lease is in its soft tier, ExpiresIn (or MaxHoldIn) is the rest of its
	// time.
	Warned
	// Lost is a push: Lease went on into grace or ended against its holder's will, for the
	// reason in Code.
	Lost
	// Asked is a push: the holder of Lease is asked to yield; Lease.Yield has the asking agent
	// and its reason, and whether the lease is in its grace because of it.
	Asked
)

var outcomeNames = [...]string{
	Granted: "granted", Queued: "queued", Skipped: "skipped", Done: "done",
	Refused: "refused", Warned: "warned", Lost: "lost", Asked: "asked",
}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return ""
}
