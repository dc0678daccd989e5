package record

// Reason is why a lease or a wait ended. The numbers are in journals.
type Reason uint8

const (
	ByRelease    Reason = 1  // its holder gave it back
	ByTTL        Reason = 2  // no heartbeat within its ttl
	ByMaxHold    Reason = 3  // held for as long as it may be
	ByStall      Reason = 4  // heartbeats without progress
	ByRevocation Reason = 5  // an operator took it back
	BySession    Reason = 6  // its session was closed
	ByDeath      Reason = 7  // its session expired
	ByLapse      Reason = 8  // the offer was not taken up, or the ticket not polled
	ByLeaving    Reason = 9  // its waiter left the line
	ByDeadlock   Reason = 10 // it was the victim of a cycle
	ByWaitLimit  Reason = 11 // it reached its maximum wait
	ByPreemption Reason = 12 // another request asked for its keys, and the pattern let it
	ByBreak      Reason = 13 // a party of its barrier died or left
	ByConversion Reason = 14 // the conversion was granted: it is part of its lease now
	ByBase       Reason = 15 // the lease that it would have changed or belongs to is over
	ByParking    Reason = 16 // its maximum parking time passed
	ByTarget     Reason = 17 // the session that it waited for is over
	ByPattern    Reason = 18 // its key will never have as many permits, besides those that its flow has
	ByNack       Reason = 19 // its worker said that the attempt has failed
	ByFull       Reason = 20 // its run could not start while its caller waited
	ByQuestion   Reason = 21 // its worker asks a person
	ByForgetting Reason = 22 // its session lives, and no longer knows of it
	ByTakeOver   Reason = 23 // the next process of its holder has it now
)

var reasonNames = [...]string{
	ByRelease: "released", ByTTL: "ttl", ByMaxHold: "max_hold", ByStall: "stall", ByRevocation: "revoked",
	BySession: "session_closed", ByDeath: "session_expired", ByLapse: "lapsed", ByLeaving: "left", ByDeadlock: "deadlock",
	ByWaitLimit: "wait_limit", ByPreemption: "preempted", ByBreak: "barrier_broken", ByConversion: "converted",
	ByBase: "lease_ended", ByParking: "park_limit", ByTarget: "target_ended",
	ByPattern: "pattern_changed", ByNack: "nack", ByFull: "too_many_runs",
	ByQuestion: "question", ByForgetting: "forgotten", ByTakeOver: "taken_over",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return ""
}

// Reasons returns all reasons.
func Reasons() (list []Reason) {
	for r := range reasonNames {
		if reasonNames[r] != "" {
			list = append(list, Reason(r))
		}
	}
	return list
}
