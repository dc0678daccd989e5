package chain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// ErrTooOld reports that a head cannot be checked: the entries from which the chain up to it
// could be computed were truncated.
var ErrTooOld = errors.New("the head is older than what the journal can prove")

// TamperError reports that a journal does not match a published head, or the marks of its own
// snapshot. Some entry behind After and up to UpTo is not what it was.
type TamperError struct {
	After, UpTo interlock.Index
	Reason      string
}

func (e *TamperError) Error() string {
	return "the journal was changed: " + e.Reason
}

// Verifier computes the chain over a journal again and compares it with published heads and
// with the marks of the newest snapshot. Marks can be forged by anyone with the files: they
// narrow down where a change is, and heads show whether there is one.
type Verifier struct {
	heads []Head // that are still to come, in order
	marks []Link // that are still to come, in order

	chain     *Chain          // nil before the entry behind the first mark that can be used
	last      interlock.Index // that was added
	good      interlock.Index // the last one that a head or a mark agrees with
	tampered  *TamperError
	old       []Head
	oldest    Link // where the chain begins
	confirmed []Head
}

// NewVerifier returns a Verifier for a journal with this record in its newest snapshot, a zero
// Record where there is no snapshot, and for published heads in any order.
func NewVerifier(r Record, heads []Head) *Verifier {
	v := &Verifier{heads: slices.Clone(heads), marks: slices.Clone(r.Marks)}
	if len(v.marks) == 0 {
		v.marks = []Link{Start(0)}
	}
	slices.SortStableFunc(v.heads, func(a, b Head) int { return cmp.Compare(a.Index, b.Index) })
	return v
}

// Add takes the next entry of the journal. The first one is the oldest that is kept.
func (v *Verifier) Add(e journal.Entry) {
	v.last = e.Index
	if v.chain == nil && !v.begin(e.Index) {
		return
	}
	v.chain.Add(e)
	v.compare()
}

// begin starts the chain if the entry at index is one behind a mark.
func (v *Verifier) begin(index interlock.Index) bool {
	for len(v.marks) > 0 && v.marks[0].Index+1 < index {
		v.marks = v.marks[1:]
	}
	if len(v.marks) == 0 || v.marks[0].Index+1 > index {
		return false
	}
	v.oldest = v.marks[0]
	v.chain, v.good = From(v.oldest), v.oldest.Index
	for len(v.heads) > 0 && v.heads[0].Index < v.oldest.Index {
		v.old, v.heads = append(v.old, v.heads[0]), v.heads[1:]
	}
	v.compare()
	return true
}

// compare compares the chain with all that is known of its index.
func (v *Verifier) compare() {
	at, agrees := v.chain.Last(), false
	if len(v.marks) > 0 && v.marks[0].Index == at.Index {
		if agrees = v.marks[0] == at; !agrees {
			v.differs(at.Index, "it does not lead to its own mark at "+at.Index.String())
		}
		v.marks = v.marks[1:]
	}
	for len(v.heads) > 0 && v.heads[0].Index == at.Index {
		h := v.heads[0]
		v.heads = v.heads[1:]
		if h != at.Head() {
			v.differs(at.Index, "it does not lead to the head "+h.String())
			continue
		}
		v.confirmed, agrees = append(v.confirmed, h), true
	}
	if agrees && v.tampered == nil {
		v.good = at.Index
	}
}

// differs notes the first place that does not agree.
func (v *Verifier) differs(at interlock.Index, reason string) {
	if v.tampered == nil {
		reason += fmt.Sprintf("; an entry behind %s and up to %s was changed, added, removed or moved", v.good, at)
		v.tampered = &TamperError{After: v.good, UpTo: at, Reason: reason}
	}
}

// Proof is a Verifier's result for a whole journal.
type Proof struct {
	// From is the index from which the chain was computed: the entry behind it is the first
	// that a head proves.
	From interlock.Index
	// Head is the head after the last entry.
	Head Head
	// Confirmed are the published heads to which the journal leads.
	Confirmed []Head
}

// End ends the check. The error is a *TamperError, or wraps ErrTooOld.
func (v *Verifier) End() (Proof, error) {
	if v.chain == nil && !v.begin(v.last+1) { // else all that is kept stands before the last mark
		if len(v.heads) > 0 {
			return Proof{}, fmt.Errorf("%w: no mark in its snapshot leads to head %s", ErrTooOld, v.heads[0])
		}
		return Proof{}, nil
	}
	p := Proof{From: v.oldest.Index, Head: v.chain.Last().Head(), Confirmed: v.confirmed}
	switch {
	case v.tampered != nil:
		return p, v.tampered
	case len(v.heads) > 0:
		reason := fmt.Sprintf(
			"it ends with entry %s, before the head %s: its end was removed, or it is an older copy", p.Head.Index, v.heads[0],
		)
		return p, &TamperError{After: p.Head.Index, UpTo: v.heads[0].Index, Reason: reason}
	case len(v.marks) > 0:
		reason := fmt.Sprintf("it ends with entry %s, before its own mark at %s", p.Head.Index, v.marks[0].Index)
		return p, &TamperError{After: p.Head.Index, UpTo: v.marks[0].Index, Reason: reason}
	case len(v.old) > 0:
		return p, fmt.Errorf("%w: the chain can be computed behind entry %s only, and the head is %s: check a newer one, "+
			"or a backup",
			ErrTooOld, p.From, v.old[0])
	}
	return p, nil
}
