package record

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// Approval is the last question about a task, and the answer.
type Approval struct {
	Text    string            `journal:"1,always"`
	Agent   string            `journal:"2"` // the agent that requests it
	Asked   Time              `journal:"3,since,always"`
	Limit   time.Duration     `journal:"4"`  // after which it answers itself; 0: never
	Paused  time.Duration     `journal:"15"` // since it was asked, while no answer was possible
	OnLimit interlock.Verdict `journal:"5"`
	Reads   []interlock.Read  `journal:"9"`  // the reads of the asker
	Askers  []string          `journal:"14"` // principals besides the submitter that cannot answer it

	Given     []interlock.Endorsement `journal:"16"` // approvals so far, where one is not enough
	Verdict   interlock.Verdict       `journal:"6"`  // 0 while it is open
	By        string                  `journal:"7"`  // the name that the answerer claims
	Principal string                  `journal:"13"` // that answered; "" without credentials
	Reason    string                  `journal:"8"`  // why, in the answerer's words
	Cause     []byte                  `journal:"19"` // why, as a message of the engine: see Why

	// Acted are the principals that some of Given count for besides their own Principal.
	Acted []string `journal:"22"`

	// Least is the number of approvals that its queue required when it was asked; 0: none had to be given.
	Least int `journal:"23"`

	UsedIn   int  `journal:"20"` // the first attempt that began under it; 0: none
	Replayed bool `journal:"21"` // attempts are counted anew since
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
	n := approvalBytes + len(a.Text) + len(a.Agent) + len(a.By) + len(a.Principal) + a.Why().Size()
	for _, name := range a.Askers {
		n += len(name) + nameBytes
	}
	for _, name := range a.Acted {
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
	a.Asked, a.Paused, a.Given, a.Acted, a.Verdict, a.By, a.Principal = now, 0, nil, nil, 0, "", ""
	a.UsedIn, a.Replayed = 0, false
	a.SetWhy(nil)
	a.AddAsker(principal)
}

// AddAsker notes a principal that cannot answer the question.
func (a *Approval) AddAsker(principal string) {
	if principal != "" && !slices.Contains(a.Askers, principal) {
		a.Askers = append(slices.Clip(a.Askers), principal)
	}
}

// Why returns why the question was answered as it was: words, or a message of the engine.
func (a *Approval) Why() *message.Text { return joinText(a.Reason, a.Cause) }

// SetWhy sets why the question was answered as it was.
func (a *Approval) SetWhy(t *message.Text) { a.Reason, a.Cause = splitText(t) }

// HasGiven reports whether a principal, or without credentials a person of that name, has
// approved already.
func (a *Approval) HasGiven(principal, by string) bool {
	return slices.ContainsFunc(a.Given, func(x interlock.Endorsement) bool {
		return x.Principal == principal && (principal != "" || x.By == by)
	})
}

// HasActed returns the first of some principals that have approved already, itself or by a link; "" for none.
func (a *Approval) HasActed(principals []string) string {
	for _, p := range principals {
		if p != "" && (slices.Contains(a.Acted, p) || a.HasGiven(p, "")) {
			return p
		}
	}
	return ""
}

// Give notes one of several approvals, which is the act of some principals.
func (a *Approval) Give(x interlock.Endorsement, acted []string) {
	a.Given = append(slices.Clip(a.Given), x)
	for _, p := range acted {
		if !slices.Contains(a.Acted, p) {
			a.Acted = append(slices.Clip(a.Acted), p)
		}
	}
}

// AppendApproval writes a question and its answer, with times from base on.
func AppendApproval(b []byte, a *Approval, base Time) []byte { return appendApproval(b, a, base) }

// DecodeApproval reads what AppendApproval wrote.
func DecodeApproval(b []byte, base Time) (*Approval, error) {
	a := &Approval{}
	err := readApproval(b, a, base)
	return a, err
}

// caller is the principal that asks a question, or asks anew. The actor of the event is the
// same one; journals of earlier versions have that alone, and must fold to the states that they
// had.
type caller struct {
	Principal string `journal:"1"`
}

// AppendPrincipal writes the principal that asks a question, or asks anew.
func AppendPrincipal(b []byte, principal string) []byte {
	return appendCaller(b, &caller{principal})
}

// DecodePrincipal reads what AppendPrincipal wrote.
func DecodePrincipal(b []byte) (principal string, err error) {
	var x caller
	err = readCaller(b, &x)
	return x.Principal, err
}

// verdict is the principal that answers a question, as caller, and why, if that is a message of the
// engine; words are the event's note. Question is for readers of the trail; journals of earlier
// versions do not have it. Acted are the principals that answer by a link.
type verdict struct {
	Principal string   `journal:"1"`
	Cause     []byte   `journal:"2"`
	Question  string   `journal:"3"`
	Acted     []string `journal:"4"`
}

// SetVerdict sets the principal that answers a question, those that act by it, and why.
func (ev *Event) SetVerdict(principal string, acted []string, question string, why *message.Text) {
	v := verdict{Principal: principal, Question: question, Acted: acted}
	ev.Note, v.Cause = splitText(why)
	ev.Blob = appendVerdict(nil, &v)
}

// Verdict returns the principal that answered a question, those that act by it, and why.
func (ev *Event) Verdict() (principal string, acted []string, why *message.Text, err error) {
	var v verdict
	err = readVerdict(ev.Blob, &v)
	return v.Principal, v.Acted, joinText(ev.Note, v.Cause), err
}

// Question returns the question that a person is asked, or has answered; "" if there is none, and
// of an answer that an earlier version journaled.
func (ev *Event) Question() string {
	switch ev.Kind {
	case ApprovalRequested:
		if a, err := DecodeApproval(ev.Blob, ev.At); err == nil {
			return a.Text
		}
	case ApprovalDecided:
		var v verdict
		if readVerdict(ev.Blob, &v) == nil {
			return v.Question
		}
	}
	return ""
}
