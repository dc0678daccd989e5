package merge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Stage is a file as one side of a merge has it: its mode, such as "100644", and its object. The zero value stands
// for no file.
type Stage struct {
	Mode   string `json:"mode,omitempty"`
	Object string `json:"object,omitempty"`
}

// change is a path that differs between two trees. A rename is two changes.
type change struct{ old, new Stage }

func (c *change) adds() bool    { return c.old == Stage{} }
func (c *change) deletes() bool { return c.new == Stage{} }

// compare lists the paths that differ between two trees. It fails with errTooMany above limit.
func (b *Boundary) compare(ctx context.Context, from, to string, limit int) (map[string]change, error) {
	changes := map[string]change{}
	if from == to {
		return changes, nil
	}
	for _, tree := range []string{from, to} {
		if err := git.CheckObject(tree); err != nil {
			return nil, err
		}
	}
	// A line that is no tree comes back as it is. It marks the end of the answer.
	const end = "end\n"
	header := from + " " + to + "\n"
	err := b.diff.ask(ctx, header+end, func(r *bufio.Reader) error {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if line != header {
			return fmt.Errorf("git diff-tree cannot compare %s with %s", from, to)
		}
		for {
			if mark, err := r.Peek(1); err != nil || mark[0] != ':' {
				break
			}
			raw, err := readField(r)
			if err != nil {
				return err
			}
			path, err := readField(r)
			if err != nil {
				return err
			}
			c, err := parseChange(raw)
			if err != nil {
				return err
			}
			if len(changes) <= limit {
				changes[path] = c
			}
		}
		line, err = r.ReadString('\n')
		if err == nil && line != end {
			err = fmt.Errorf("git diff-tree printed %.200q", line)
		}
		return err
	})
	if err == nil && len(changes) > limit {
		err = errTooMany
	}
	return changes, err
}

var errTooMany = fmt.Errorf("more paths differ than the limit")

// readField reads up to a NUL, which ends each field of git's output with -z.
func readField(r *bufio.Reader) (string, error) {
	field, err := r.ReadString(0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return strings.TrimSuffix(field, "\x00"), err
}

// parseChange reads ":OLDMODE NEWMODE OLD NEW STATUS".
func parseChange(raw string) (change, error) {
	f := strings.Fields(strings.TrimPrefix(raw, ":"))
	if len(f) != 5 {
		return change{}, fmt.Errorf("git diff-tree printed %.200q", raw)
	}
	stage := func(mode, object string) Stage {
		if git.IsZero(object) {
			return Stage{}
		}
		return Stage{mode, object}
	}
	return change{stage(f[0], f[2]), stage(f[1], f[3])}, nil
}

// touched lists what the submission changes: each path in which its head differs from a merge base.
func (b *Boundary) touched(ctx context.Context, bases []string, head string) (map[string]change, error) {
	all := map[string]change{}
	for _, base := range bases {
		changes, err := b.compare(ctx, base, head, MaxPaths)
		if err != nil {
			return nil, err
		}
		for path, c := range changes {
			all[path] = c
		}
	}
	if len(all) > MaxPaths {
		return nil, errTooMany
	}
	return all, nil
}

// strayed returns the paths, in order, in which the new tree differs from the parent's although the submission does
// not touch them. A path is no stray if the target made it of a touched one: it is new in the target since a base, a
// touched path is gone from the target since then, and a merge carries the change along the rename.
//
// The rule is not git's own detection of renames: it shall not share the mistakes that it has to find.
func (b *Boundary) strayed(
	ctx context.Context, bases []string, parent string, touched, landed map[string]change,
) (strays []string, err error) {
	for path := range landed {
		if _, ok := touched[path]; !ok {
			strays = append(strays, path)
		}
	}
	if len(strays) == 0 {
		return nil, nil
	}
	made := map[string]bool{}
	for _, base := range bases {
		since, err := b.compare(ctx, base, parent, maxDrift)
		if err != nil {
			return nil, err
		}
		moved := false
		for path, c := range since {
			if _, ok := touched[path]; ok && c.deletes() {
				moved = true
			}
		}
		for path, c := range since {
			if moved && c.adds() {
				made[path] = true
			}
		}
	}
	strays = slices.DeleteFunc(strays, func(path string) bool {
		c := landed[path]
		return made[path] && !c.adds() && !c.deletes()
	})
	slices.Sort(strays)
	return strays, nil
}

// comeAndGone lists the new paths in order, and counts those that are gone and were not moved: each new path stands
// for one that had its object, or its name but for folder and ending.
func comeAndGone(landed map[string]change) (added []string, lost int) {
	plain := func(p string) string { return strings.TrimSuffix(path.Base(p), path.Ext(p)) }
	names, objects := map[string]int{}, map[string]int{}
	for p, c := range landed {
		if c.adds() {
			added = append(added, p)
			names[plain(p)]++
			objects[c.new.Object]++
		}
	}
	for p, c := range landed {
		switch {
		case !c.deletes():
		case objects[c.old.Object] > 0:
			objects[c.old.Object]--
		case names[plain(p)] > 0:
			names[plain(p)]--
		default:
			lost++
		}
	}
	slices.Sort(added)
	return added, lost
}

// maxDrift bounds how many paths of a target may differ from a submission's base where a rename has to be found.
const maxDrift = 1_000_000

// unsafePath reports whether git would refuse to check out a path: a part that is empty, ".", ".." or a spelling of
// .git on some file system.
func unsafePath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		plain := strings.TrimRight(strings.ToLower(part), ". ")
		plain = strings.Map(func(c rune) rune {
			// HFS+ ignores these characters in names.
			if c >= 0x200c && c <= 0x200f || c >= 0x202a && c <= 0x202e || c >= 0x206a && c <= 0x206f || c == 0xfeff {
				return -1
			}
			return c
		}, plain)
		if stream, _, ok := strings.Cut(plain, ":"); ok {
			plain = stream // NTFS: .git::$INDEX_ALLOCATION
		}
		if part == "" || part == "." || part == ".." || plain == ".git" || plain == "git~1" {
			return true
		}
	}
	return false
}
