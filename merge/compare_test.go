package merge

import (
	"slices"
	"strings"
	"testing"
)

// A history with each kind of merge commit. The boundary's tree is that of git wherever git merged alone, and each
// other outcome is named.
func TestCompare(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{
		"a": text(tenLines), "b": text("b\n"), "LOG": text("1\n"), ".gitattributes": text("LOG merge=union\n"),
	})
	oursFiles := files{"a": text("one\n" + tenLines[2:]), "LOG": text("1\n2\n")}
	ours := r.commit(oursFiles, base)
	theirs := r.commit(files{"a": text(tenLines + "11\n"), "LOG": text("1\n3\n")}, base)
	other := r.commit(files{"a": text("uno\n" + tenLines[2:])}, base)
	root := r.commit(files{"z": text("z\n")})
	both := files{"a": text("one\n" + tenLines[2:] + "11\n"), "LOG": text("1\n2\n3\n")}
	with := func(path, content string) files {
		changed := files{path: text(content)}
		for path, f := range both {
			if _, ok := changed[path]; !ok {
				changed[path] = f
			}
		}
		return changed
	}
	// Two branches that merged each other have two merge bases.
	left := r.commit(both, ours, theirs)
	right := r.commit(both, theirs, ours)
	left2, right2 := r.commit(files{"l": text("l\n")}, left), r.commit(files{"r": text("r\n")}, right)
	for name, c := range map[string]struct {
		commit string
		want   Outcome
		paths  []string
	}{
		"as git merges":       {left, OutcomeSame, nil},
		"two bases":           {r.commit(files{"r": text("r\n")}, left2, right2), OutcomeSame, nil},
		"nothing to merge":    {r.commit(nil, left, theirs), OutcomeSame, nil},
		"fast forward":        {r.commit(oursFiles, base, ours), OutcomeSame, nil},
		"resolved by hand":    {r.commit(with("a", "both\n"), ours, other), OutcomeConflict, []string{"a"}},
		"ours":                {r.commit(nil, ours, theirs), OutcomeOneSide, []string{"LOG", "a"}},
		"edited in the merge": {r.commit(with("b", "x\n"), ours, theirs), OutcomeEdited, []string{"b"}},
		"added in the merge":  {r.commit(with("new", "x\n"), ours, theirs), OutcomeEdited, []string{"new"}},
		"a change lost":       {r.commit(with("LOG", "1\n3\n"), ours, theirs), OutcomeEdited, []string{"LOG"}},
		"unrelated":           {r.commit(files{"z": text("z\n")}, ours, root), OutcomeUnrelated, nil},
		"one parent":          {ours, OutcomeNone, nil},
		"three parents":       {r.commit(both, ours, theirs, base), OutcomeNone, nil},
	} {
		got, err := r.open("", true).Compare(t.Context(), c.commit)
		if err != nil || got.Outcome != c.want || !slices.Equal(got.Paths, c.paths) || got.Commit != c.commit {
			t.Errorf("%s: %+v, %v, want %s with %q", name, got, err, c.want, c.paths)
		}
	}
	if got, err := r.boundary().Compare(t.Context(), strings.Repeat("1", 40)); err == nil {
		t.Errorf("a commit that is nowhere compares as %+v", got)
	}
}
