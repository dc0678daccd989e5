package interlock

// Error is how every refusal and failure looks, on the server as in the
// clients. Code and Message are always set; the rest where it applies.
//
// An Error with a Code other than CodeOutcomeUnknown is the server's decision about the
// request. With CodeOutcomeUnknown no answer came, and only the same request id can find out.
type Error struct {
	Code         Code
	Message      string // lower-case, names the key and its holder; Advice has the next step
	Key          Key
	ConflictKind ConflictKind
	Holders      []Holder
	Line         *Line
	Cycle        []CycleStep
	Nearest      []string  // for CodeUnmatchedKey: shapes and keys that are spelled alike
	Capacity     *Capacity // of the key, where it has one
	EndedBy      string    // why a lease or ticket is gone: Lease.EndedBy
	Advice       Advice
	At           At
}

// Conflict describes the blockers of a request: at the first of its keys that is not free.
type Conflict struct {
	Key     Key
	Kind    ConflictKind
	Holders []Holder // at most MaxShownHolders, in the order of their fences
	More    int      // holders not shown
	Line    Line     // as a new request would find it
	Cycle   []CycleStep

	Capacity *Capacity // of Key, where it has one
	Nearest  []string  // for CodeUnmatchedKey: shapes and keys that are spelled alike
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Is makes errors.Is(err, &interlock.Error{Code: c}) compare codes.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}
