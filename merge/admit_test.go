package merge

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestAdmit(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text("a\n")})
	head := r.commit(files{"a": text("head\n"), "b/c": text("c\n")}, base)
	conflict := r.commit(files{"a": text("other\n")}, base)
	unrelated := r.commit(files{"a": text("x\n")})
	b := r.boundary()
	for name, parent := range map[string]string{"the base": base, "a target that conflicts": conflict} {
		paths, err := b.Admit(t.Context(), turn(1, parent, head))
		if err != nil || !slices.Equal(paths, []string{"a", "b/c"}) {
			t.Errorf("on %s: %v, %v, want it admitted with its two paths", name, paths, err)
		}
	}
	for name, c := range map[string]struct {
		head string
		want Reason
	}{"contained": {base, ReasonEmpty}, "unrelated": {unrelated, ReasonBase}} {
		_, err := b.Admit(t.Context(), turn(1, base, c.head))
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || refusal.Reason != c.want {
			t.Errorf("%s: %v, want %s", name, refusal, c.want)
		}
	}
	wrong := turn(1, base, head)
	wrong.ID = "../x"
	if _, err := b.Admit(t.Context(), wrong); err == nil {
		t.Error("an id with slashes is admitted")
	}
	// Each object of the submission has to be there: its commit, its trees and its files.
	for _, object := range []string{head, head + "^{tree}", head + ":b", head + ":b/c"} {
		id := r.run("rev-parse", object)
		name := filepath.Join(r.git.Dir, "objects", id[:2], id[2:])
		if err := os.Rename(name, name+".aside"); err != nil {
			t.Fatal(err)
		}
		_, err := r.boundary().Admit(t.Context(), turn(1, base, head))
		if missing, ok := errors.AsType[*Missing](err); !ok || missing.Object != id {
			t.Errorf("without %s: %v, want %s missing", object, err, id)
		}
		if err := os.Rename(name+".aside", name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClashes(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text(tenLines), "b": text(tenLines), "LOG": text("1\n")})
	head := r.commit(files{"a": text("one\n" + tenLines[2:]), "LOG": text("1\n2\n")}, base)
	apart := r.commit(files{"a": text(tenLines + "11\n")}, base)
	both := r.commit(files{"a": text("uno\n" + tenLines[2:]), "b": text("x\n"), "LOG": text("1\n3\n")}, base)
	child := r.commit(files{"b": text("y\n")}, head)
	unrelated := r.commit(files{"a": text("z\n")})
	module := r.commit(files{"m": {"160000", strings.Repeat("1", 40)}}, base)
	others := []string{both, apart, unrelated, child, base, module, both}
	for name, c := range map[string]struct {
		parent string
		want   []Clash
	}{
		"without attributes": {base, []Clash{{both, []string{"LOG", "a"}}, {both, []string{"LOG", "a"}}}},
		"with attributes": {
			r.commit(files{".gitattributes": text("LOG merge=union\n")}, base),
			[]Clash{{both, []string{"a"}}, {both, []string{"a"}}},
		},
	} {
		got, err := r.boundary().Clashes(t.Context(), c.parent, head, others)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	// A conflict of submodules, with its advice for people, does not disturb the answers behind it.
	moved := r.commit(files{"m": {"160000", strings.Repeat("2", 40)}}, module)
	also := r.commit(files{"m": {"160000", strings.Repeat("3", 40)}, "a": text("x\n")}, module)
	got, err := r.boundary().Clashes(t.Context(), base, moved, []string{also, apart, also})
	if err != nil || len(got) != 2 || !slices.Equal(got[1].Paths, []string{"m"}) {
		t.Errorf("submodules: %+v, %v, want two clashes at m", got, err)
	}
	if got, err := r.boundary().Clashes(t.Context(), base, head, nil); err != nil || got != nil {
		t.Errorf("no others: %+v, %v", got, err)
	}
	if got, err := r.boundary().Clashes(t.Context(), base, head, []string{"--all"}); err == nil {
		t.Errorf("an option as head: %+v", got)
	}
}
