package merge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge/sequence"
)

// Renumber is a rule of the profile. A submission may add a file to a sequence with a number that the target has taken
// meanwhile: then the landing has the file under the next free number. That is part of the function, so the rule is
// part of the profile, and the landing's commit names it.
type Renumber struct {
	// Sequence is a directory and the form of the names in it, such as "migrations/{n:4}_{name}.sql".
	Sequence string `json:"sequence"`
	// Arguments are those of Program for one rename, with {from}, {to}, {directory} and {n} filled in: the old and the
	// new path, their directory, and the new number as the file has it.
	Arguments []string `json:"arguments,omitempty"`
	// Digest is that of the program's file, as "sha256:…". It is empty if Interlock renames the file itself.
	Digest string `json:"digest,omitempty"`

	program string
	rule    sequence.Rule
}

// ReadRenumber reads "SEQUENCE=PROGRAM ARGUMENTS", with words separated by spaces, and computes the program's digest.
// With nothing behind "=" Interlock renames the file and changes no content.
//
// The program runs in a folder that has the merged tree and nothing else, for each rename once, in their order, with
// an environment made from nothing but PATH. What it leaves there is the landing's tree. It must not depend on time,
// network, or files elsewhere, and must leave alone what the submission does not touch.
func ReadRenumber(text string) (r Renumber, err error) {
	name, command, ok := strings.Cut(text, "=")
	if !ok {
		return r, fmt.Errorf("renumber %q: want SEQUENCE=PROGRAM ARGUMENTS, or SEQUENCE= to rename only", text)
	}
	if r.rule, err = sequence.ParseRule(name); err != nil {
		return r, err
	}
	r.Sequence = r.rule.String()
	words := strings.Fields(command)
	if len(words) == 0 {
		return r, nil
	}
	r.Arguments = words[1:]
	if r.program, r.Digest, err = readProgram(words[0]); err != nil {
		return r, fmt.Errorf("renumber %s: %w", r.Sequence, err)
	}
	return r, nil
}

// renumberWithin bounds the programs of one landing.
const renumberWithin = time.Minute

// RenumberError is a program that did not end, or could not run. It decides nothing about the submission.
type RenumberError struct {
	Sequence string
	Err      error
}

// Error names the rule.
func (e *RenumberError) Error() string {
	return fmt.Sprintf("the command that renumbers %s has no result: %v", e.Sequence, e.Err)
}

// Unwrap returns the cause.
func (e *RenumberError) Unwrap() error { return e.Err }

// renumber returns a merged tree with free numbers for the files that are new in it, the rules that changed it, and
// the new names.
func (b *Boundary) renumber(
	ctx context.Context, parent, tree string, touched map[string]change,
) (renumbered string, applied []Renumber, renamed []sequence.Rename, err error) {
	for _, r := range b.profile.Renumbers {
		directory := r.rule.Directory
		if !slices.ContainsFunc(slices.Collect(maps.Keys(touched)), func(p string) bool { return path.Dir(p) == directory }) {
			continue
		}
		target, err := b.files(ctx, parent, directory)
		if err != nil {
			return "", nil, nil, err
		}
		now, err := b.files(ctx, tree, directory)
		if err != nil {
			return "", nil, nil, err
		}
		renames := sequence.Renumber([]sequence.Rule{r.rule}, target, without(now, target))
		if len(renames) == 0 {
			continue
		}
		if r.program == "" {
			tree, err = b.rename(ctx, tree, renames)
		} else {
			tree, err = b.renumberBy(ctx, &r, tree, renames)
		}
		if err != nil {
			return "", nil, nil, err
		}
		if now, err = b.files(ctx, tree, directory); err != nil {
			return "", nil, nil, err
		}
		if left := sequence.Check([]sequence.Rule{r.rule}, target, without(now, target)); len(left) > 0 {
			return "", nil, nil, &Refusal{
				Reason: ReasonRenumber, Paths: []string{left[0].Path}, Detail: "afterwards " + left[0].String(),
			}
		}
		applied, renamed = append(applied, r), append(renamed, renames...)
	}
	return tree, applied, renamed, nil
}

// without returns the paths that are not in another list.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(p string) bool { return slices.Contains(other, p) })
}

// files lists the paths right in a directory of a tree.
func (b *Boundary) files(ctx context.Context, tree, directory string) ([]string, error) {
	args := []string{"ls-tree", "--name-only", "-z", "--full-tree", tree}
	if directory != "." {
		args = append(args, "--", directory+"/")
	}
	out, err := b.git.Output(ctx, args...)
	return strings.FieldsFunc(out, func(c rune) bool { return c == 0 }), err
}

// rename renames files of a tree.
func (b *Boundary) rename(ctx context.Context, tree string, renames []sequence.Rename) (string, error) {
	work, err := os.MkdirTemp(b.folder.Path(), "renumber-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(work, "index")}
	run := func(in string, args ...string) (string, error) {
		out, err := b.git.Run(ctx, git.Call{Args: args, Env: index, In: strings.NewReader(in)})
		return strings.TrimSpace(string(out.Out)), err
	}
	if _, err := run("", "read-tree", tree); err != nil {
		return "", err
	}
	for _, r := range renames {
		entry, err := run("", "ls-files", "--stage", "-z", "--", r.From)
		f := strings.Fields(entry)
		if err != nil || len(f) < 3 {
			return "", errors.Join(err, fmt.Errorf("git ls-files printed %.200q for %q", entry, r.From))
		}
		change := fmt.Sprintf("0 %s\t%s\x00%s %s\t%s\x00", strings.Repeat("0", b.idLength), r.From, f[0], f[1], r.To)
		if _, err := run(change, "update-index", "-z", "--index-info"); err != nil {
			return "", err
		}
	}
	return run("", "write-tree")
}

// renumberBy has a program carry out renames in a work tree. Files come and go there byte by byte, whatever attributes
// the tree has, so that a file which the program leaves alone cannot change.
func (b *Boundary) renumberBy(
	ctx context.Context, r *Renumber, tree string, renames []sequence.Rename,
) (string, error) {
	work, err := os.MkdirTemp(b.folder.Path(), "renumber-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	in := func(name string) string { return filepath.Join(work, name) }
	for _, folder := range []string{"tree", "home", "tmp", "git/objects", "git/refs", "git/info"} {
		if err := os.MkdirAll(in(folder), 0o700); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"HEAD", "config"} {
		text, err := os.ReadFile(b.folder.Path("git", name))
		if err == nil {
			err = os.WriteFile(in("git/"+name), text, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	const asTheyAre = "* -text -filter -ident -working-tree-encoding\n"
	if err := os.WriteFile(in("git/info/attributes"), []byte(asTheyAre), 0o600); err != nil {
		return "", err
	}
	raw := b.git
	raw.Dir, raw.WorkTree = in("git"), in("tree")
	for _, args := range [][]string{{"read-tree", tree}, {"checkout-index", "--all", "--force", "--index"}} {
		if _, err := raw.Output(ctx, args...); err != nil {
			return "", err
		}
	}
	limited, cancel := context.WithTimeout(ctx, renumberWithin)
	defer cancel()
	for _, rename := range renames {
		if err := r.run(limited, rename, in); err != nil {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			return "", err
		}
	}
	if _, err := raw.Output(ctx, "add", "--all", "--force", "."); err != nil {
		return "", err
	}
	return raw.Output(ctx, "write-tree")
}

// run runs the program for one rename.
func (r *Renumber) run(ctx context.Context, rename sequence.Rename, in func(string) string) error {
	cmd := exec.CommandContext(ctx, r.program, r.rule.Command(r.Arguments, rename)...)
	cmd.Dir = in("tree")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + in("home"), "TMPDIR=" + in("tmp"), "PWD=" + in("tree"),
	}
	git.Alone(cmd)
	var said bytes.Buffer
	cmd.Stdout = &tailWriter{buffer: &said}
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &RenumberError{r.Sequence, ctx.Err()}
	case !exited || !exit.Exited() || exit.ExitCode() == 126 || exit.ExitCode() == 127:
		return &RenumberError{r.Sequence, err}
	}
	return &Refusal{
		Reason: ReasonRenumber, Paths: []string{rename.From},
		Detail: fmt.Sprintf("exit code %d: %s", exit.ExitCode(), strings.ToValidUTF8(said.String(), "")),
	}
}

// tailWriter keeps the last bytes.
type tailWriter struct{ buffer *bytes.Buffer }

func (w *tailWriter) Write(p []byte) (int, error) {
	w.buffer.Write(p)
	if more := w.buffer.Len() - maxNote; more > 0 {
		w.buffer.Next(more)
	}
	return len(p), nil
}

// trailerRenumber names the rules that changed a landing's tree, as a JSON array.
const trailerRenumber = "Interlock-Renumber"

// renumbered reads which rules have changed the tree of a landing.
func (c *commit) renumbered() (list []Renumber) {
	_, block, _ := cutLast(strings.TrimSuffix(c.message, "\n"), "\n\n")
	for line := range strings.SplitSeq(block, "\n") {
		text, ok := strings.CutPrefix(line, trailerRenumber+": ")
		if !ok || json.Unmarshal([]byte(text), &list) != nil {
			continue
		}
		for i := range list {
			rule, err := sequence.ParseRule(list[i].Sequence)
			if err != nil {
				return nil
			}
			list[i].rule = rule
		}
	}
	return list
}

// newOnes takes those paths from strays that are new files in the directories of rules.
func newOnes(strays []string, rules []Renumber, landed map[string]change) []string {
	return slices.DeleteFunc(strays, func(p string) bool {
		c := landed[p]
		return c.adds() && slices.ContainsFunc(rules, func(r Renumber) bool { return r.rule.Directory == path.Dir(p) })
	})
}

// otherRules tells in words which of a landing's rules are not those of the boundary, or "".
func (b *Boundary) otherRules(c *commit) string {
	for _, was := range c.renumbered() {
		i := slices.IndexFunc(b.profile.Renumbers, func(r Renumber) bool { return r.Sequence == was.Sequence })
		if i < 0 {
			return fmt.Sprintf("; it was renumbered by the rule %s, which is missing here", was.Sequence)
		}
		if here := &b.profile.Renumbers[i]; here.Digest != was.Digest || !slices.Equal(here.Arguments, was.Arguments) {
			return fmt.Sprintf("; the rule %s had the command %s %q, and here it has %s %q",
				was.Sequence, was.Digest, was.Arguments, here.Digest, here.Arguments)
		}
	}
	return ""
}
