package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Unsound is what git itself refuses about objects: its own words, cleaned, at most 2 KiB.
type Unsound struct {
	// Words are those of git. Names in them are other agents' text.
	Words string
}

// Error quotes git.
func (e *Unsound) Error() string { return fmt.Sprintf("git refuses the objects: %q", e.Words) }

// maxWords bounds the words of others that an error repeats.
const maxWords = 2 << 10

// Words cleans a text of another program for people and models: one line for each line, no control characters, at most
// 2 KiB.
func Words(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' || c >= 0x7f && c < 0xa0 || c == '\uFFFD' {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "") + "…"
	}
	return text
}

// stricter are rules of fsck that are only advice by default, and stop others: a clone cannot read such a file, or its
// programs follow the link.
const stricter = "badFilemode=error,gitmodulesParse=error,gitattributesSymlink=error,gitignoreSymlink=error"

// maxExcused bounds how many objects are excused because the other commit has the same fault.
const maxExcused = 100

// Fsck has git check the commits, trees and files that the commit head adds to the commit have, by the rules that a
// forge applies with transfer.fsckObjects. What have contains already is never held against head, nor a fault of a
// folder that the same folder of have has, too. A temporary pack goes into folder. The error is an *[Unsound] if git
// refuses the objects, or cannot read them, and an *[Error] if git failed otherwise.
func (r *Repository) Fsck(ctx context.Context, folder, head, have string) error {
	work, err := os.MkdirTemp(folder, "fsck-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	list, err := r.Output(ctx, "rev-list", "--objects", "--end-of-options", head, "^"+have)
	if err != nil {
		return unsound(err)
	}
	if list == "" {
		return nil
	}
	paths := map[string]string{}
	var ids strings.Builder
	for line := range strings.SplitSeq(list, "\n") {
		id, path, _ := strings.Cut(line, " ")
		if CheckObject(id) != nil {
			continue // the rest of a name with a newline
		}
		paths[id] = path
		fmt.Fprintln(&ids, id)
	}
	pack := filepath.Join(work, "new.pack")
	if err := r.pack(ctx, pack, ids.String()); err != nil {
		return unsound(err)
	}
	var excused []string
	for {
		faults, refused := r.indexStrictly(ctx, pack, excused)
		if faults == nil || len(excused) > maxExcused {
			return refused
		}
		before := len(excused)
		for id, kinds := range faults {
			path, added := paths[id]
			old := !added
			if added && !slices.Contains(excused, id) {
				if old, err = r.hasFaults(ctx, filepath.Join(work, "old.pack"), have, path, kinds); err != nil {
					return err
				}
			}
			if old {
				excused = append(excused, id)
			}
		}
		if len(excused) == before {
			return refused
		}
	}
}

// pack writes a pack of objects to a file.
func (r *Repository) pack(ctx context.Context, name, ids string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	plain := *r
	plain.Config = slices.Concat(r.Config, []string{"pack.compression=0", "core.bigFileThreshold=1m"})
	_, err = plain.Run(ctx, Call{
		Args: []string{"pack-objects", "--quiet", "--stdout", "--window=0"}, In: strings.NewReader(ids), Out: f,
	})
	return errors.Join(err, f.Close())
}

// indexStrictly checks a pack. faults has the kinds of faults of each object that git named before it gave up.
func (r *Repository) indexStrictly(
	ctx context.Context, pack string, excused []string,
) (faults map[string][]string, err error) {
	rules := "--strict=" + stricter
	if len(excused) > 0 {
		skip := pack + ".skip"
		if err := os.WriteFile(skip, []byte(strings.Join(excused, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
		rules += ",skiplist=" + skip
	}
	index := strings.TrimSuffix(pack, ".pack") + ".idx"
	_, err = r.Run(ctx, Call{Args: []string{"index-pack", rules, "-o", index, pack}})
	if err == nil {
		return nil, nil
	}
	if failure, ok := errors.AsType[*Error](err); ok {
		for line := range strings.SplitSeq(failure.Stderr, "\n") {
			rest, ok := strings.CutPrefix(line, "error: object ")
			id, kind, named := strings.Cut(rest, ": ")
			kind, _, _ = strings.Cut(kind, ":")
			if !ok || !named || CheckObject(id) != nil {
				continue
			}
			if faults == nil {
				faults = map[string][]string{}
			}
			faults[id] = append(faults[id], kind)
		}
	}
	return faults, unsound(err)
}

// hasFaults reports whether the object at a path of a commit has all of these kinds of faults.
func (r *Repository) hasFaults(ctx context.Context, pack, commit, path string, kinds []string) (bool, error) {
	name := commit + "^{tree}"
	if path != "" {
		name = commit + ":" + path
	}
	old, err := r.Run(ctx, Call{
		Args: []string{"rev-parse", "--quiet", "--verify", "--end-of-options", name}, Answers: []int{1, 128},
	})
	if err != nil || old.Exit != 0 {
		return false, err
	}
	if err := r.pack(ctx, pack, string(old.Out)); err != nil {
		return false, err
	}
	faults, err := r.indexStrictly(ctx, pack, nil)
	if _, refused := errors.AsType[*Unsound](err); err != nil && !refused {
		return false, err
	}
	had := faults[strings.TrimSpace(string(old.Out))]
	return !slices.ContainsFunc(kinds, func(k string) bool { return !slices.Contains(had, k) }), nil
}

// unsound takes a git that could not read objects for their fault. A killed git, or a machine without room, memory or
// rights, is no evidence against them.
func unsound(err error) error {
	failure, ok := errors.AsType[*Error](err)
	if !ok || failure.Exit < 0 || failure.Machine() {
		return err
	}
	return &Unsound{Words: Words(failure.Stderr)}
}
