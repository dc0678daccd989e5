package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// A landing's commit ends with a paragraph of trailers, in this order. With the commit's parents, dates and text they
// are all inputs of the landing, so a branch can be recomputed from itself.
const (
	trailerLanding    = "Interlock-Landing"
	trailerSubmission = "Interlock-Submission"
	trailerProfile    = "Interlock-Profile"
	// The author and the checks, where they are known.
	trailerAgent     = "Interlock-Agent"
	trailerPrincipal = "Interlock-Credential"
	trailerChecks    = "Interlock-Checks"
	// A squash has its head as a trailer, since it is not among its parents, and each landing a base that is not that of
	// history.
	trailerHead = "Interlock-Head"
	trailerBase = "Interlock-Base"
)

// maxTrailer is how many bytes the author's name, or the names of the checks, have in a trailer.
const maxTrailer = 1 << 10

// commit is the commit of a turn.
func (t *Turn) commit(tree string, head *commit, profile string, renumbered []Renumber) commit {
	c := commit{
		tree: tree, parents: []string{t.Parent}, author: person(head.author),
		committer: person(cmp.Or(t.Committer, committer)), authored: t.Submitted, committed: t.Staged, signature: t.Signature,
	}
	if t.Style != StyleSquash {
		c.parents = append(c.parents, t.Head)
	}
	text := t.text(head)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s: %d\n%s: %s\n%s: %s\n", text, trailerLanding, t.Sequence, trailerSubmission, t.ID,
		trailerProfile, profile)
	for _, f := range [][2]string{{trailerAgent, t.Agent}, {trailerPrincipal, t.Principal}, {trailerChecks, t.Checks}} {
		if value := oneLine(cut(f[1], maxTrailer)); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", f[0], value)
		}
	}
	if t.Style == StyleSquash {
		fmt.Fprintf(&b, "%s: %s\n", trailerHead, t.Head)
	}
	if t.Base != "" {
		fmt.Fprintf(&b, "%s: %s\n", trailerBase, t.Base)
	}
	if len(renumbered) > 0 {
		text, err := json.Marshal(renumbered)
		if err != nil {
			panic("merge: a rule has a value that JSON cannot hold: " + err.Error())
		}
		fmt.Fprintf(&b, "%s: %s\n", trailerRenumber, text)
	}
	c.message = b.String()
	return c
}

// text is the message of a turn: its own, else that of its head, else its id.
func (t *Turn) text(head *commit) string {
	for _, text := range []string{t.Message, head.message} {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
		if text = strings.Trim(cut(text, maxMessage), " \t\r\n"); text != "" {
			return text
		}
	}
	return "Land " + t.ID
}

// turn reads a landing's inputs from its commit. ok is false for a commit that is no landing.
func (c *commit) turn() (t Turn, profile string, ok bool) {
	text, block, found := cutLast(strings.TrimSuffix(c.message, "\n"), "\n\n")
	if !found {
		return Turn{}, "", false
	}
	fields := map[string]string{}
	for line := range strings.SplitSeq(block, "\n") {
		name, value, found := strings.Cut(line, ": ")
		if _, twice := fields[name]; !found || twice {
			return Turn{}, "", false
		}
		fields[name] = value
	}
	sequence, err := strconv.ParseUint(fields[trailerLanding], 10, 64)
	if err != nil || fields[trailerSubmission] == "" || fields[trailerProfile] == "" {
		return Turn{}, "", false
	}
	t = Turn{
		Submission: Submission{
			ID: fields[trailerSubmission], Message: text, Submitted: c.authored,
			Agent: fields[trailerAgent], Principal: fields[trailerPrincipal],
		},
		Sequence: sequence, Staged: c.committed, Checks: fields[trailerChecks], Signature: c.signature,
	}
	if c.committer != committer {
		t.Committer = c.committer
	}
	switch {
	case len(c.parents) == 2 && fields[trailerHead] == "":
		t.Style, t.Parent, t.Head, t.Base = StyleMerge, c.parents[0], c.parents[1], fields[trailerBase]
	case len(c.parents) == 1 && git.CheckObject(fields[trailerHead]) == nil:
		t.Style, t.Parent, t.Head, t.Base = StyleSquash, c.parents[0], fields[trailerHead], fields[trailerBase]
	default:
		return Turn{}, "", false
	}
	return t, fields[trailerProfile], true
}

// cutLast cuts s around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
