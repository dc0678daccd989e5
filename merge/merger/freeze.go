package merger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/merge/train"
)

// A freeze keeps what is not excepted from landing. It is a document beside the seat's lease, because an operator
// writes it; the engine reserves its key for the roles operator and merger. The merger looks for it each Config.Poll
// and before each landing. Checks go on meanwhile.

// Freeze is the document of a frozen target.
type Freeze struct {
	Reason string `json:"reason,omitempty"`
	// Submissions, Credentials and Priority tell what lands all the same: some submissions in line, what some credentials
	// submit (without credentials: some agents), and what has a priority.
	Submissions []Excepted `json:"submissions,omitempty"`
	Credentials []string   `json:"credentials,omitempty"`
	Priority    bool       `json:"priority,omitempty"`
}

// Excepted is a submission that lands in a freeze, also when it was returned and comes back. Its author is named,
// because another one could submit under the ID later.
type Excepted struct {
	ID        string `json:"id"`
	Agent     string `json:"agent,omitempty"`
	Principal string `json:"principal,omitempty"`
}

// Frozen is a freeze, and its author as the server has it.
type Frozen struct {
	Freeze
	Agent     string
	Principal string
	Age       time.Duration
}

// FreezeKey is the key of a target's freeze.
func (n Name) FreezeKey() interlock.Key {
	return interlock.Key("freeze:" + n.Repo + "/" + n.targetSegment())
}

// ParseFreeze reads the freeze in a document, and returns nil if there is none. One that cannot be read has no
// exceptions.
func ParseFreeze(d interlock.Document) *Frozen {
	if d.Absent {
		return nil
	}
	f := &Frozen{Agent: d.Agent, Principal: d.Principal, Age: d.Age}
	if json.Unmarshal(d.Body, &f.Freeze) != nil {
		f.Freeze = Freeze{Reason: "the document of the freeze cannot be read"}
	}
	return f
}

// FreezeOf reads the freeze of a target, and returns nil if there is none.
func FreezeOf(ctx context.Context, c Reader, name Name) (*Frozen, error) {
	d, err := c.Document(ctx, name.FreezeKey())
	if err != nil {
		return nil, err
	}
	return ParseFreeze(d), nil
}

// Lands reports whether a submission is excepted from the freeze. A nil freeze excepts each.
func (f *Freeze) Lands(r *Record) bool {
	if f == nil || f.Priority && r.Priority > 0 {
		return true
	}
	author := r.Principal
	if author == "" {
		author = r.Agent // a name that the agent has chosen, on a server without credentials
	}
	return slices.Contains(f.Credentials, author) ||
		slices.Contains(f.Submissions, Excepted{ID: r.ID, Agent: r.Agent, Principal: r.Principal})
}

// Text names the author, the age and the reason of the freeze, and its exceptions.
func (f *Frozen) Text(name Name) string {
	by := fmt.Sprintf("%q", f.Agent)
	if f.Principal != "" {
		by = fmt.Sprintf("credential %q", f.Principal)
	}
	text := fmt.Sprintf("the target is frozen since %v ago by %s", f.Age.Round(time.Second), by)
	if f.Reason != "" {
		text += fmt.Sprintf(" (%q)", f.Reason)
	}
	var except []string
	for _, s := range f.Submissions {
		except = append(except, s.ID)
	}
	for _, c := range f.Credentials {
		except = append(except, fmt.Sprintf("those of %q", c))
	}
	if f.Priority {
		except = append(except, "those with a priority")
	}
	lands := "nothing lands"
	if len(except) > 0 {
		lands = fmt.Sprintf("only %s can land", strings.Join(except, ", "))
	}
	return fmt.Sprintf("%s: %s until `interlock merge thaw %s`", text, lands, name)
}

// readFreeze reads the freeze, and reports whether another one than before holds.
func (l *line) readFreeze(ctx context.Context) (changed bool, err error) {
	f, err := FreezeOf(ctx, l.Client, l.Name)
	if err != nil {
		return false, err
	}
	changed = (f == nil) != (l.freeze == nil) ||
		f != nil && string(encode(f.Freeze)) != string(encode(l.freeze.Freeze))
	if changed && f == nil {
		l.Log.Info("the target is thawed")
	} else if changed {
		l.Log.Warn(f.Text(l.Name))
	}
	l.freeze = f
	return changed, nil
}

// hold tells the train which submissions a freeze keeps.
func (l *line) hold() {
	held := map[train.ID]bool{}
	for id, e := range l.records {
		if l.freeze != nil && !l.freeze.Lands(&e.record) {
			held[id] = true
		}
	}
	l.train.Hold(held)
}
