package record

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
)

// Approval is the last question about a task, and the answer.
type Approval struct {
	Text    string
	Agent   string // the agent that requests it
	Asked   Time
	Limit   time.Duration // after which it answers itself; 0: never
	Paused  time.Duration // since it was asked, while no answer was possible
	OnLimit interlock.Verdict
	Reads   []interlock.Read // what the asker had read
	Askers  []string         // principals besides the submitter that cannot answer it

	Given     []interlock.Endorsement // approvals so far, where one is not enough
	Verdict   interlock.Verdict       // 0 while it is open
	By        string                  // the name that the answerer claims
	Principal string                  // that answered; "" without credentials
	Reason    string                  // why
}

const (
	approvalBytes = 256 // that a question costs besides its texts and its reads
	readBytes     = 32  // that a read costs besides its key
	nameBytes     = 16  // that a principal costs besides its name
	givenBytes    = 48  // that one of several approvals costs besides its texts
)

// Size returns the cost of remembering it.
func (a *Approval) Size() int {
	if a == nil {
		return 0
	}
	n := approvalBytes + len(a.Text) + len(a.Agent) + len(a.By) + len(a.Principal) + len(a.Reason)
	for _, name := range a.Askers {
		n += len(name) + nameBytes
	}
	for i := range a.Given {
		n += len(a.Given[i].Principal) + len(a.Given[i].By) + len(a.Given[i].Reason) + givenBytes
	}
	for i := range a.Reads {
		n += len(a.Reads[i].Key) + readBytes
	}
	return n
}

// Until returns the time when the question gets its default answer. Periods in which no answer
// was possible do not count.
func (a *Approval) Until() Time {
	if a.Limit == 0 {
		return Never
	}
	return a.Asked.Add(a.Limit).Add(a.Paused)
}

// Reopen asks anew, for a principal.
func (a *Approval) Reopen(now Time, principal string) {
	a.Asked, a.Paused, a.Given, a.Verdict, a.By, a.Principal, a.Reason = now, 0, nil, 0, "", "", ""
	a.AddAsker(principal)
}

// AddAsker notes a principal that cannot answer the question.
func (a *Approval) AddAsker(principal string) {
	if principal != "" && !slices.Contains(a.Askers, principal) {
		a.Askers = append(slices.Clip(a.Askers), principal)
	}
}

// HasGiven reports whether a principal, or without credentials a person of that name, has
// approved already.
func (a *Approval) HasGiven(principal, by string) bool {
	return slices.ContainsFunc(a.Given, func(x interlock.Endorsement) bool {
		return x.Principal == principal && (principal != "" || x.By == by)
	})
}

// AppendApproval writes a question and its answer, with times from base on.
func AppendApproval(b []byte, a *Approval, base Time) []byte {
	f := Fields{b}
	f.Text(1, a.Text)
	if a.Agent != "" {
		f.Text(2, a.Agent)
	}
	f.Number(3, uint64(a.Asked.Sub(base)))
	f.Number(4, uint64(a.Limit))
	f.Number(5, uint64(a.OnLimit))
	f.Number(6, uint64(a.Verdict))
	if a.By != "" {
		f.Text(7, a.By)
	}
	if a.Reason != "" {
		f.Text(8, a.Reason)
	}
	for _, r := range a.Reads { // a key, then what belongs to it
		f.Text(9, string(r.Key))
		f.Number(10, uint64(r.Version))
		f.Flag(11, r.Absent)
		f.Flag(12, r.Present)
	}
	if a.Principal != "" {
		f.Text(13, a.Principal)
	}
	for _, name := range a.Askers {
		f.Text(14, name)
	}
	f.Number(15, uint64(a.Paused))
	for i := range a.Given { // a name, then what belongs to it
		x := &a.Given[i]
		f.Text(16, x.By)
		if x.Principal != "" {
			f.Text(17, x.Principal)
		}
		if x.Reason != "" {
			f.Text(18, x.Reason)
		}
	}
	return f.Bytes
}

// AppendPrincipal writes the principal that answers a question, or asks anew. The actor of
// the event is the same one; journals of earlier versions have that alone, and must fold to
// the states that they had.
func AppendPrincipal(b []byte, principal string) []byte {
	f := Fields{b}
	if principal != "" {
		f.Text(1, principal)
	}
	return f.Bytes
}

// DecodePrincipal reads what AppendPrincipal wrote.
func DecodePrincipal(b []byte) (principal string, err error) {
	err = EachField(b, func(id, _ uint64, text string) bool {
		principal = text
		return id == 1
	})
	return principal, err
}

// DecodeApproval reads what AppendApproval wrote.
func DecodeApproval(b []byte, base Time) (*Approval, error) {
	a := &Approval{Asked: base}
	failed := false
	err := EachField(b, func(id, n uint64, text string) bool {
		switch id {
		case 1:
			a.Text = text
		case 2:
			a.Agent = text
		case 3:
			a.Asked = base.Add(time.Duration(n))
		case 4:
			a.Limit = time.Duration(n)
		case 5:
			a.OnLimit = interlock.Verdict(n)
		case 6:
			a.Verdict = interlock.Verdict(n)
		case 7:
			a.By = text
		case 8:
			a.Reason = text
		case 9:
			a.Reads = append(a.Reads, interlock.Read{Key: interlock.Key(text)})
		case 10, 11, 12:
			if len(a.Reads) == 0 {
				failed = true
				return true
			}
			switch r := &a.Reads[len(a.Reads)-1]; id {
			case 10:
				r.Version = interlock.Version(n)
			case 11:
				r.Absent = true
			default:
				r.Present = true
			}
		case 13:
			a.Principal = text
		case 14:
			a.Askers = append(a.Askers, text)
		case 15:
			a.Paused = time.Duration(n)
		case 16:
			a.Given = append(a.Given, interlock.Endorsement{By: text})
		case 17, 18:
			if len(a.Given) == 0 {
				failed = true
				return true
			}
			if x := &a.Given[len(a.Given)-1]; id == 17 {
				x.Principal = text
			} else {
				x.Reason = text
			}
		default:
			return false
		}
		return true
	})
	if err == nil && failed {
		err = ErrMalformed
	}
	return a, err
}
