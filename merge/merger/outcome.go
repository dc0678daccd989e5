package merger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/merge"
)

// landed is the outcome of a landing.
func landed(name Name, landing *Landing) *Outcome {
	text := fmt.Sprintf("Landed on %s as number %d, commit %s.", name.Target, landing.Sequence, landing.Commit)
	if r := landing.Resolved; r != nil {
		text += fmt.Sprintf(" It was in conflict, and a resolver merged both sides in commit %s", r.Commit)
		if r.Note != "" {
			text += fmt.Sprintf(": %q", r.Note)
		}
		text += "."
	}
	if len(landing.Allowed) > 0 {
		text += fmt.Sprintf(" Its author allowed: %s.", join(landing.Allowed))
	}
	for _, h := range landing.Held {
		text += fmt.Sprintf(" %s: tell its holder.", h)
	}
	for _, r := range landing.Renamed {
		text += fmt.Sprintf(" Its number was taken: %q is %q there.", r.From, r.To)
	}
	return &Outcome{
		Code: Landed, Submission: landing.Submission, Target: string(name.Key()), Landing: landing, Message: text,
	}
}

// back is the outcome of a submission that goes back, without its message.
func (l *line) back(e *entry, why Why, against *Against) *Outcome {
	return &Outcome{
		Code: Returned, Submission: e.record.ID, Target: string(l.Name.Key()), Reason: why, Against: against,
		Tries: e.record.Tries + 1,
	}
}

// returned is the outcome of a submission that cannot be merged onto the head and the landings that are staged with it.
func (l *line) returned(e *entry, res stepResult, against *Against, staged []Landing) *Outcome {
	if res.fault != nil {
		return l.faulty(e, res.fault, against)
	}
	if res.objection != nil {
		return l.objected(e, res.objection, against)
	}
	r := res.refusal
	if r.Reason != merge.ReasonConflict {
		o := l.back(e, WhyPolicy, against)
		if r.Reason == merge.ReasonRenumber {
			o.Reason = WhySequence
		}
		o.Message = r.Error()
		if r.Reason == whyMissing {
			o.Message = missing(strings.Join(r.Paths, ", "))
		}
		return o
	}
	o := l.back(e, WhyConflict, against)
	var authors []string
	for _, c := range r.Conflicts {
		own := Conflict{Conflict: c}
		for _, landing := range slices.Backward(append(slices.Clone(l.last), staged...)) {
			if slices.Contains(landing.Paths, c.Path) && len(own.LandedBy) < 3 {
				own.LandedBy = append(own.LandedBy, LandedBy{landing.Sequence, landing.Agent, landing.Purpose})
			}
		}
		if len(own.LandedBy) > 0 {
			by := own.LandedBy[0]
			if who := fmt.Sprintf("%q (%q)", by.Agent, by.Purpose); !slices.Contains(authors, who) {
				authors = append(authors, who)
			}
		}
		o.Conflicts = append(o.Conflicts, own)
	}
	o.Message = "Your change is kept, and " + r.Cause() + "."
	if len(authors) > 0 {
		o.Message = fmt.Sprintf("%s It was %s.", o.Message, strings.Join(authors, ", "))
	}
	if e.record.Unresolved != "" {
		o.Message += fmt.Sprintf(" A resolver did not help (%q).", e.record.Unresolved)
	}
	o.Message += fmt.Sprintf(" To resolve the conflict: %s, and %s.", syncFirst(&e.record), submitAgain(&e.record))
	return o
}

// syncFirst is how the author of a submission gets what the target has.
func syncFirst(r *Record) string {
	if r.Workspace != "" {
		return "run `interlock workspace sync`"
	}
	return "merge the target into your branch"
}

// submitAgain is how the author of a submission hands it in again.
func submitAgain(r *Record) string {
	if r.Workspace != "" {
		return "run `interlock workspace submit`: your place is kept"
	}
	return "submit again with \"resubmits\": your place is kept"
}

func join(list []Why) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}
