package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock/internal/git"
)

// Kind is what kind of conflict a path has. The list is closed; a later git's new kinds are KindOther.
type Kind string

const (
	// KindContent is a text that both sides changed in the same lines, or that both sides added.
	KindContent Kind = "content"
	// KindBinary is a file that git cannot merge by lines, and both sides changed.
	KindBinary Kind = "binary"
	// KindModifyDelete is a file that one side changed and the other deleted.
	KindModifyDelete Kind = "modify_delete"
	// KindRenameDelete is a file that one side renamed and the other deleted.
	KindRenameDelete Kind = "rename_delete"
	// KindRename is a file that both sides renamed differently, or two files that got one name.
	KindRename Kind = "rename"
	// KindDirectoryRename is a file that one side added to a folder that the other side renamed. Its path is the new one;
	// the note has the old one.
	KindDirectoryRename Kind = "directory_rename"
	// KindFileDirectory is a path that is a file on one side and a folder on the other.
	KindFileDirectory Kind = "file_directory"
	// KindType is a path that is a file on one side, and a link or a submodule on the other.
	KindType Kind = "type"
	// KindSubmodule is a submodule that both sides moved.
	KindSubmodule Kind = "submodule"
	// KindOther is another kind. Conflict.Note has git's words.
	KindOther Kind = "other"
)

// kinds are git's short names of conflicts, without "CONFLICT (" and ")". The first that fits counts.
var kinds = []struct {
	prefix string
	kind   Kind
}{
	{"contents", KindContent},
	{"binary", KindBinary},
	{"modify/delete", KindModifyDelete},
	{"rename/delete", KindRenameDelete},
	{"rename", KindRename},
	{"directory rename", KindDirectoryRename},
	{"implicit dir rename", KindDirectoryRename},
	{"file/directory", KindFileDirectory},
	{"distinct", KindType},
	{"submodule", KindSubmodule},
}

// Conflict is a path that git could not merge. Base, Ours and Theirs are the file in the merge base, in the target
// and in the submission.
type Conflict struct {
	Path   string `json:"path"`
	Kind   Kind   `json:"kind"`
	Base   Stage  `json:"base,omitzero"`
	Ours   Stage  `json:"ours,omitzero"`
	Theirs Stage  `json:"theirs,omitzero"`
	// Hunks are the regions in conflict with three lines around each, base included, between conflict markers. At
	// most 4 KiB, and empty where the file is no text.
	Hunks string `json:"hunks,omitempty"`
	// Cut is set when the path has more hunks.
	Cut bool `json:"cut,omitempty"`
	// Note is git's own sentence.
	Note string `json:"note,omitempty"`
}

const (
	maxHunks    = 4 << 10
	maxAllHunks = 16 << 10
	maxNote     = 500
	// maxMerged bounds the size of a file that is shown as hunks.
	maxMerged = 1 << 20
	// around is how many lines are shown before and after a region.
	around = 3
)

// parseConflicts reads the output of merge-tree -z behind the tree: entries "MODE OBJECT STAGE\tPATH", an empty
// field, and messages of a number of paths, the paths, a short name and a sentence.
func parseConflicts(text string) ([]Conflict, error) {
	byPath := map[string]*Conflict{}
	at := func(path string) *Conflict {
		if byPath[path] == nil {
			byPath[path] = &Conflict{Path: path}
		}
		return byPath[path]
	}
	fields := strings.Split(text, "\x00")
	next := func() (field string, ok bool) {
		if len(fields) == 0 {
			return "", false
		}
		field, fields = fields[0], fields[1:]
		return field, true
	}
	for {
		entry, ok := next()
		if !ok || entry == "" {
			break
		}
		facts, path, found := strings.Cut(entry, "\t")
		f := strings.Fields(facts)
		if !found || len(f) != 3 {
			return nil, fmt.Errorf("git merge-tree printed %.200q", entry)
		}
		c, stage := at(path), Stage{f[0], f[1]}
		switch f[2] {
		case "1":
			c.Base = stage
		case "2":
			c.Ours = stage
		case "3":
			c.Theirs = stage
		default:
			return nil, fmt.Errorf("git merge-tree printed the stage %.200q", entry)
		}
	}
	for {
		count, ok := next()
		if !ok || count == "" {
			break
		}
		n, err := strconv.Atoi(count)
		if err != nil {
			break // advice for people, such as the steps to resolve a submodule, ends the output
		}
		if n < 1 || len(fields) < n+2 {
			return nil, fmt.Errorf("git merge-tree printed a message of %d paths and %d fields", n, len(fields))
		}
		paths, name, note := fields[:n], fields[n], strings.TrimSpace(fields[n+1])
		fields = fields[n+2:]
		kind, isConflict := kindOf(name)
		if !isConflict {
			continue
		}
		// A message of several paths is about the first; the others are where it came from. All are shown if git left
		// stages of them.
		for i, path := range paths {
			if c := byPath[path]; i == 0 || c != nil {
				c = at(path)
				if c.Kind == "" {
					c.Kind, c.Note = kind, cut(note, maxNote)
				}
			}
		}
	}
	if len(byPath) == 0 {
		return nil, errors.New("git merge-tree reported a conflict and named no path")
	}
	conflicts := make([]Conflict, 0, len(byPath))
	for _, c := range byPath {
		if c.Kind == "" {
			c.Kind = KindOther
		}
		conflicts = append(conflicts, *c)
	}
	slices.SortFunc(conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	return conflicts, nil
}

// kindOf reads git's short name of a message, such as "CONFLICT (modify/delete)".
func kindOf(name string) (kind Kind, isConflict bool) {
	rest, ok := strings.CutPrefix(name, "CONFLICT (")
	if !ok {
		return "", false
	}
	for _, k := range kinds {
		if strings.HasPrefix(rest, k.prefix) {
			return k.kind, true
		}
	}
	return KindOther, true
}

// refuse makes the refusal of conflicts, with their hunks.
func (b *Boundary) refuse(ctx context.Context, t Turn, conflicts []Conflict) error {
	r := &Refusal{Reason: ReasonConflict, Conflicts: conflicts}
	if len(conflicts) > maxNamed {
		r.Conflicts, r.Truncated = conflicts[:maxNamed], true
	}
	left := maxAllHunks
	for i := range r.Conflicts {
		c := &r.Conflicts[i]
		r.Paths = append(r.Paths, c.Path)
		if left == 0 {
			c.Cut = c.Kind == KindContent
			continue
		}
		if err := b.hunks(ctx, t, c, min(left, maxHunks)); err != nil {
			return err
		}
		left -= len(c.Hunks)
	}
	return r
}

// hunks fills in the regions in conflict. It merges the file once more, in the style that shows the base, too.
func (b *Boundary) hunks(ctx context.Context, t Turn, c *Conflict, limit int) error {
	if c.Kind != KindContent || !isFile(c.Ours) || !isFile(c.Theirs) || c.Base != (Stage{}) && !isFile(c.Base) {
		return nil
	}
	dir, err := os.MkdirTemp(b.folder.Path(), "hunks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, stage := range map[string]Stage{"ours": c.Ours, "base": c.Base, "theirs": c.Theirs} {
		var content []byte
		if stage.Object != "" {
			if content, err = b.object(ctx, "blob", stage.Object); err != nil {
				return err
			}
		}
		if len(content) > maxMerged || bytes.IndexByte(content, 0) >= 0 {
			return nil
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	ours, theirs := fmt.Sprintf("target before landing %d", t.Sequence), "submission "+t.ID
	repository := b.git
	repository.Folder = dir
	// The exit is the number of conflicts, at most 127. 128 and more are failures.
	answers := make([]int, 127)
	for i := range answers {
		answers[i] = i + 1
	}
	merged, err := repository.Run(ctx, git.Call{
		Args: []string{
			"merge-file", "-p", "-q", "--diff3", "-L", ours, "-L", "base", "-L", theirs, "ours", "base", "theirs",
		},
		Answers: answers,
	})
	if err != nil {
		return err
	}
	c.Hunks, c.Cut = regions(string(merged.Out), "<<<<<<< "+ours, ">>>>>>> "+theirs, limit)
	return nil
}

// isFile reports whether a stage is a regular file.
func isFile(s Stage) bool { return strings.HasPrefix(s.Mode, "100") }

// regions selects the regions between markers, with a header "@@ line N @@" and the lines around each.
func regions(text, begin, end string, limit int) (hunks string, isCut bool) {
	lines := strings.SplitAfter(text, "\n")
	is := func(i int, marker string) bool { return strings.TrimRight(lines[i], "\r\n") == marker }
	var b strings.Builder
	shown := 0 // the lines before this one are written, or left out
	for i := 0; i < len(lines) && b.Len() <= limit; i++ {
		if !is(i, begin) {
			continue
		}
		to := i
		for to < len(lines)-1 && !is(to, end) {
			to++
		}
		to++
		for rest := around; rest > 0 && to < len(lines) && !is(to, begin); rest-- {
			to++
		}
		from := max(shown, i-around)
		if from > shown || from == 0 {
			fmt.Fprintf(&b, "@@ line %d @@\n", from+1)
		}
		b.WriteString(strings.Join(lines[from:to], ""))
		shown, i = to, to-1
	}
	hunks = strings.ToValidUTF8(b.String(), "\uFFFD")
	if len(hunks) <= limit {
		return hunks, false
	}
	return cut(hunks, limit), true
}

// cut shortens a text to a number of bytes, at the end of a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
