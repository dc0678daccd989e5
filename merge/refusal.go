package merge

import (
	"fmt"
	"strings"
)

// Reason is why a submission cannot land. The list is closed.
type Reason string

const (
	// ReasonConflict is a change that the target has also changed. Refusal.Conflicts has the details.
	ReasonConflict Reason = "conflict"
	// ReasonEmpty is a submission of changes that the target has already.
	ReasonEmpty Reason = "empty"
	// ReasonLimit is a submission that changes more than [MaxPaths] paths.
	ReasonLimit Reason = "limit"
	// ReasonSize is a submission that adds more than [MaxNewBytes]. Only Admit finds it.
	ReasonSize Reason = "size"
	// ReasonPath is a path that git refuses to check out, such as one with a part "..".
	ReasonPath Reason = "path"
	// ReasonObjects is a submission with objects that git refuses, such as a commit without an author or a tree with
	// two entries of one name. Only Admit finds it. Refusal.Detail has git's words.
	ReasonObjects Reason = "objects"
	// ReasonBase is a head without common history with the target, or one that its own base is no ancestor of.
	ReasonBase Reason = "base"
	// ReasonRenumber is a file with a number that is taken, where the operator's command could not give it another one.
	ReasonRenumber Reason = "renumber"
)

// Refusal is the boundary's answer to a submission that cannot land. It depends on the turn and the profile alone, and
// nothing has changed.
type Refusal struct {
	Reason Reason `json:"reason"`
	// Paths are the paths in question, in order: those in conflict, or those refused. At most 1,000.
	Paths []string `json:"paths,omitempty"`
	// Conflicts has each path in conflict, in order, at most 1,000. All hunks together have at most 16 KiB.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Truncated is set when there are more conflicts.
	Truncated bool `json:"truncated,omitempty"`
	// Detail is the end of a command's output, for ReasonRenumber and ReasonObjects.
	Detail string `json:"detail,omitempty"`
}

// maxNamed is how many paths a refusal names.
const maxNamed = 1000

// Cause is the first part of Error for a conflict, without the next step.
func (r *Refusal) Cause() string { return "the target has changed " + names(r.Paths) }

// Error is one sentence, and the next step. Paths are quoted: other agents chose them.
func (r *Refusal) Error() string {
	switch r.Reason {
	case ReasonConflict:
		return r.Cause() + ": resolve the conflict on the target's commit, and submit again"
	case ReasonEmpty:
		return "the target has all changes of the submission already: nothing is left to land"
	case ReasonLimit:
		return fmt.Sprintf("the submission changes more than %d paths: submit it in parts", MaxPaths)
	case ReasonSize:
		return fmt.Sprintf("the submission adds more than %d MiB: submit it in parts, or keep large files elsewhere",
			MaxNewBytes>>20)
	case ReasonPath:
		return fmt.Sprintf("the submission has paths that git refuses to check out, %s: rename them", names(r.Paths))
	case ReasonObjects:
		return fmt.Sprintf("git refuses what the submission adds (%q): make these commits anew, without the fault",
			r.Detail)
	case ReasonBase:
		return "the submission's head does not descend from its base, or has no history in common with the target: " +
			"merge the target into it, and submit again"
	}
	if r.Reason == ReasonRenumber {
		return fmt.Sprintf("%s has a number that is taken, and could not be renumbered (%q): take a free number, "+
			"and submit again", names(r.Paths), r.Detail)
	}
	return "the submission cannot land: " + string(r.Reason)
}

// names quotes the first paths of a list.
func names(paths []string) string {
	const shown = 3
	quoted := make([]string, 0, shown)
	for _, path := range paths[:min(len(paths), shown)] {
		quoted = append(quoted, fmt.Sprintf("%q", path))
	}
	text := strings.Join(quoted, ", ")
	if more := len(paths) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Damage is a merge of git that breaks an invariant: it changes paths that the submission does not touch. Nothing may
// land from it.
type Damage struct {
	Submission, Parent, Tree string
	// Paths are in order.
	Paths []string
}

// Error names the first paths.
func (e *Damage) Error() string {
	return fmt.Sprintf("the merge of %s into %s changes %s, which the submission does not touch: "+
		"land nothing, and compare the tree %s", e.Submission, e.Parent, names(e.Paths), e.Tree)
}
