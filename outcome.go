package interlock

// Outcome is the outcome of a command, or the kind of a push. Each has its part of the answer.
type Outcome uint8

const (
	// OutcomeGranted: Lease is set.
	OutcomeGranted Outcome = 1 + iota
	// OutcomeQueued: Ticket and Conflict are set. Another answer follows if the wait is attached.
	OutcomeQueued
	// OutcomeSkipped: another holder already does it; Conflict is set.
	OutcomeSkipped
	// OutcomeDone: it was carried out. Session is set for the commands about sessions.
	OutcomeDone
	// OutcomeRefused: Code and Message are set, and the conflict where there is one.
	OutcomeRefused
	// OutcomeWarned is a push: Lease is in its soft tier, ExpiresIn (or MaxHoldIn) is the rest of its
	// time.
	OutcomeWarned
	// OutcomeLost is a push: Lease went on into grace or ended against its holder's will, for the
	// reason in Code.
	OutcomeLost
	// OutcomeAsked is a push: the holder of Lease is asked to yield; Lease.Yield has the asking agent
	// and its reason, and whether the lease is in its grace because of it.
	OutcomeAsked
)

var outcomeNames = [...]string{
	OutcomeGranted: "granted", OutcomeQueued: "queued", OutcomeSkipped: "skipped", OutcomeDone: "done",
	OutcomeRefused: "refused", OutcomeWarned: "warned", OutcomeLost: "lost", OutcomeAsked: "asked",
}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return ""
}
