package merger

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/sequence"
	"github.com/interlockdev/interlock/merge/train"
)

// Guards is what a merger looks for in submissions besides conflicts: what git merges cleanly, and is usually an
// accident. The zero value has each guard at its default, without Held.
type Guards struct {
	// Sequences selects the folders where versions of migrations must be unique.
	Sequences sequence.Guard
	// Names is which new names come back.
	Names Names
	// MaxDeletion is the share of files, in percent, that a submission may delete (default 50; 100 is no limit).
	MaxDeletion int
	// LandReverted lands what is new in a branch after the rest of it was reverted on the target.
	LandReverted bool
	// Held returns the leases on paths of the repository. nil means that leases on paths do not count.
	Held func(ctx context.Context, paths []string) ([]Holder, error)
	// NameHeld lands paths that others hold, and names these leases in the landing.
	NameHeld bool
}

// Names is which new names a submission may add.
type Names string

const (
	// NamesPortable allows names that each usual file system can have, and no two that are one there. The default.
	NamesPortable Names = "portable"
	// NamesDistinct allows all but two names that differ in case or Unicode normal form alone.
	NamesDistinct Names = "distinct"
	// NamesAny allows all that git allows.
	NamesAny Names = "any"
)

// Holder is a lease on a path. Agent and Purpose are other agents' text.
type Holder struct {
	Path    string `json:"path"`
	Key     string `json:"key"`
	Agent   string `json:"agent,omitempty"`
	Purpose string `json:"purpose,omitempty"`
}

// guard is one thing that is looked for. Its code is the reason of the return, and what an author allows.
type guard struct {
	code Why
	// allow is set if the author may say yes: Submission.Allow.
	allow bool
	// tree inspects the tree of a landing; line inspects the rest, when a submission comes and before it lands. Both
	// return sentences without an end.
	tree func(l *line, ctx context.Context, landing *merge.Landing) ([]string, error)
	line func(l *line, ctx context.Context, e *entry) ([]string, error)
	// next is what the author does, besides to allow it.
	next string
}

var guards = []guard{
	{code: WhySequence, allow: true, tree: (*line).sequences, next: "Rename"},
	{code: WhyNames, allow: true, tree: (*line).names, next: "Rename"},
	{code: WhyDeletion, allow: true, tree: (*line).deletion, next: "Restore the files"},
	{code: WhyReverted, allow: true, line: (*line).reverted, next: "Revert that commit in your branch to land all of it"},
	{code: WhyHeld, line: (*line).heldPaths, next: "Wait until it is free"},
}

// Allowable are the reasons that an author can allow, in the order of the table.
func Allowable() (list []Why) {
	for _, g := range guards {
		if g.allow {
			list = append(list, g.code)
		}
	}
	return list
}

// objection is what a guard has found.
type objection struct {
	*guard
	sentences []string
}

// objects asks the guards of a tree. allowed are those that have found something and were allowed by the author.
func (l *line) objects(
	ctx context.Context, r *Record, landing *merge.Landing,
) (o *objection, allowed []Why, err error) {
	return ask(r, func(g *guard) ([]string, error) {
		if g.tree == nil {
			return nil, nil
		}
		return g.tree(l, ctx, landing)
	})
}

// objectsNow asks the guards of the line, and returns the outcome of a submission that goes back.
func (l *line) objectsNow(ctx context.Context, e *entry, against *Against) (*Outcome, error) {
	if err := l.readHolders(ctx, e); err != nil {
		return nil, err
	}
	var o *objection
	f, err := l.attempt(ctx, e.record.ID, func(ctx context.Context) (err error) {
		o, _, err = ask(&e.record, func(g *guard) ([]string, error) {
			if g.line == nil {
				return nil, nil
			}
			return g.line(l, ctx, e)
		})
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case f != nil:
		return l.faulty(e, f, against), nil
	case o != nil:
		return l.objected(e, o, against), nil
	}
	return nil, nil
}

func ask(r *Record, find func(*guard) ([]string, error)) (o *objection, allowed []Why, err error) {
	for i := range guards {
		g := &guards[i]
		found, err := find(g)
		switch {
		case err != nil:
			return nil, nil, err
		case len(found) == 0:
		case g.allow && slices.Contains(r.Allow, g.code):
			allowed = append(allowed, g.code)
		case o == nil:
			o = &objection{g, found}
		}
	}
	return o, allowed, nil
}

// objected is the outcome of a submission that a guard returns.
func (l *line) objected(e *entry, o *objection, against *Against) *Outcome {
	out := l.back(e, o.code, against)
	if o.code == WhySequence {
		out.Sequence = o.sentences
	}
	if o.code == WhyHeld { // nothing is wrong with it
		out.Tries = max(1, e.record.Tries)
	}
	again := submitAgain(&e.record)
	if against == nil { // it has no place to keep
		again, out.Tries = "submit again", 0
	}
	if o.code == WhyHeld && e.record.Workspace != "" {
		again = "run `interlock workspace submit --again`" // the same commit
	}
	out.Message = fmt.Sprintf("Your change is kept. %s. %s, and %s.", strings.Join(o.sentences, "; "), o.next, again)
	if o.allow && e.record.Workspace != "" {
		out.Message += fmt.Sprintf(" Or, if it is meant, run `interlock workspace submit --again --allow %s`.", o.code)
	} else if o.allow {
		out.Message += fmt.Sprintf(" Or, if it is meant, submit again with %q in \"allow\".", o.code)
	}
	return out
}

// objectBefore returns the submissions among outcomes that may not land any more, and reports whether there are some.
// Then a plan with them is void.
func (l *line) objectBefore(ctx context.Context, outcomes []train.Outcome) (some bool, err error) {
	for _, out := range outcomes {
		e := l.records[out.ID]
		if out.Reason != train.Landed {
			continue
		}
		result, err := l.objectsNow(ctx, e, &Against{l.target.Sequence, l.target.Head})
		if err != nil {
			return false, err
		}
		if result == nil {
			continue
		}
		if err := l.giveBack(ctx, result); err != nil {
			return false, err
		}
		some = true
		l.train.Withdraw(out.ID)
		delete(l.records, out.ID)
		e.reply <- reply{done: client.Done{Result: result}}
		l.Log.Info(string(result.Code), "submission", e.record.ID, "reason", string(result.Reason))
	}
	return some, nil
}

// maxSentences bounds what a guard names.
const maxSentences = 5

// names finds new names that are one with another on some file systems, or that some cannot have.
func (l *line) names(ctx context.Context, landing *merge.Landing) (found []string, err error) {
	if l.Guards.Names == NamesAny || len(landing.Added) == 0 {
		return nil, nil
	}
	// Each folder of a new file is listed once, up to the root: a new folder can collide, too.
	entries := map[string]map[string]bool{}
	for _, p := range landing.Added {
		for child, folder := p, path.Dir(p); ; child, folder = folder, path.Dir(folder) {
			seen := entries[folder] != nil
			if !seen {
				entries[folder] = map[string]bool{}
			}
			entries[folder][child] = true
			if folder == "." || seen {
				break
			}
		}
	}
	for folder, touched := range entries {
		now, err := l.Files.List(ctx, landing.Commit, folder)
		if err != nil {
			return nil, err
		}
		byFold := map[string][]string{}
		for _, name := range now {
			f := fold(name)
			byFold[f] = append(byFold[f], name)
		}
		var before []string // only read where there is something to find
		isNew := func(name string) (bool, error) {
			if before == nil {
				if before, err = l.Files.List(ctx, landing.Parent, folder); err != nil {
					return false, err
				}
				before = append(before, "")
			}
			return !slices.Contains(before, name), nil
		}
		for name := range touched {
			text := ""
			if others := byFold[fold(name)]; len(others) > 1 {
				other := others[0]
				if other == name {
					other = others[1]
				}
				text = fmt.Sprintf("%q and %q differ in case or accents alone: many file systems hold only one", name, other)
			} else if why := unportable(name); why != "" && l.Guards.Names != NamesDistinct {
				text = fmt.Sprintf("%q %s", name, why)
			}
			if text == "" {
				continue
			}
			fresh, err := isNew(name)
			if err != nil {
				return nil, err
			}
			if fresh {
				found = append(found, text)
			}
		}
	}
	slices.Sort(found)
	return found[:min(len(found), maxSentences)], nil
}

// fold maps names to one that are one name where a file system ignores case and normal form.
func fold(name string) string { return norm.NFC.String(cases.Fold().String(norm.NFD.String(name))) }

// devices are names that Windows keeps for devices, with any ending.
var devices = map[string]bool{"con": true, "prn": true, "aux": true, "nul": true, "conin$": true, "conout$": true}

// unportable returns why some usual file system cannot have the last part of a path, or "".
func unportable(name string) string {
	base := path.Base(name)
	stem, _, _ := strings.Cut(strings.ToLower(base), ".")
	stem = strings.TrimRight(stem, " ")
	last, _ := utf8.DecodeLastRuneInString(stem)
	port := (strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")) &&
		utf8.RuneCountInString(stem) == 4 && strings.ContainsRune("0123456789¹²³", last)
	switch {
	case devices[stem] || port:
		return "is the name of a device on Windows"
	case strings.ContainsAny(base, `<>:"|?*\`) || strings.ContainsFunc(base, func(c rune) bool { return c < ' ' }):
		return "has a character that Windows cannot have in a name"
	case strings.HasSuffix(base, ".") || strings.HasSuffix(base, " "):
		return "ends with a dot or a space, which Windows leaves out"
	case !utf8.ValidString(base):
		return "is no UTF-8, which macOS needs"
	case !norm.NFC.IsNormalString(base):
		return "is not in normal form C, into which git on macOS changes names"
	}
	return ""
}

// fewDeleted is how many files a submission may always delete, unless they are all.
const fewDeleted = 4

// deletion finds a submission that deletes most files of the target.
func (l *line) deletion(ctx context.Context, landing *merge.Landing) ([]string, error) {
	if landing.Lost == 0 || l.Guards.MaxDeletion >= 100 {
		return nil, nil
	}
	all, err := l.Files.Count(ctx, landing.Parent)
	few := landing.Lost <= fewDeleted && (landing.Lost < all || len(landing.Added) > 0)
	if err != nil || few || landing.Lost*100 <= l.Guards.MaxDeletion*all {
		return nil, err
	}
	return []string{fmt.Sprintf(
		"It deletes %d of the %d files of the target, renames not counted, and the limit is %d %%",
		landing.Lost, all, l.Guards.MaxDeletion,
	)}, nil
}

// reverted finds a submission that goes on in a branch which has landed and was reverted since.
func (l *line) reverted(ctx context.Context, e *entry) ([]string, error) {
	if l.Guards.LandReverted || e.sound == l.target.Head {
		return nil, nil
	}
	found, err := l.Files.Reverted(ctx, l.target.Head, e.record.Head, e.paths)
	if err != nil || found == nil {
		if err == nil {
			e.sound = l.target.Head
		}
		return nil, err
	}
	by := ""
	if found.By != "" {
		by = fmt.Sprintf(" by commit %.12s", found.By)
	}
	return []string{fmt.Sprintf(
		"Commit %.12s, on which it builds, has landed and was reverted since%s: only what is newer would land",
		found.Commit, by,
	)}, nil
}

// readHolders reads the leases of others on the paths of a submission. A failure is the merger's.
func (l *line) readHolders(ctx context.Context, e *entry) error {
	if l.Guards.Held == nil {
		return nil
	}
	all, err := l.Guards.Held(ctx, e.paths)
	if err != nil {
		return fmt.Errorf("the leases on paths are not known: %w", err)
	}
	claims := e.lease.Claims() // which its task holds for it, in the merger's name
	e.holders = slices.DeleteFunc(all, func(h Holder) bool {
		own := func(c interlock.Claim) bool { return string(c.Key) == h.Key }
		return h.Agent == e.record.Agent || slices.ContainsFunc(claims, own)
	})
	return nil
}

// heldPaths finds leases of others on the paths of a submission.
func (l *line) heldPaths(_ context.Context, e *entry) (found []string, err error) {
	if l.Guards.NameHeld {
		return nil, nil
	}
	for _, h := range e.holders[:min(len(e.holders), maxSentences)] {
		found = append(found, h.String())
	}
	return found, nil
}

// String names the path, and quotes the texts of the holder.
func (h Holder) String() string {
	text := fmt.Sprintf("%q is held by agent %q", h.Path, h.Agent)
	if h.Purpose != "" {
		text += fmt.Sprintf(" (%q)", h.Purpose)
	}
	return text + fmt.Sprintf(", with a lease on %s", h.Key)
}
