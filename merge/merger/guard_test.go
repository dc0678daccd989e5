package merger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock/client"
)

// What git merges cleanly and is usually an accident comes back with a reason, and lands if its author allows it.
func TestGuards(t *testing.T) {
	many := files{}
	for i := range 20 {
		many[fmt.Sprintf("src/f%02d.go", i)] = fmt.Sprintf("package src // %d\n", i)
	}
	without := func(n int) files {
		gone := files{}
		for i := range n {
			gone[fmt.Sprintf("src/f%02d.go", i)] = "-"
		}
		return gone
	}
	moved := without(20)
	for i := range 20 {
		moved[fmt.Sprintf("lib/f%02d.ts", i)] = fmt.Sprintf("export const x = %d\n", i)
	}
	for _, c := range []struct {
		name         string
		base, change files
		guards       Guards
		why          Why // "" lands
		says         string
	}{
		{name: "case", base: files{"a/auth.ts": "a"}, change: files{"a/Auth.ts": "b"}, why: WhyNames, says: `"a/auth.ts"`},
		{name: "a folder", base: files{"src/a.ts": "a"}, change: files{"SRC/b.ts": "b"}, why: WhyNames, says: `"SRC"`},
		{name: "form", base: files{"caf\u00e9": "a"}, change: files{"cafe\u0301": "b"}, why: WhyNames, says: "accents"},
		{name: "both in one", change: files{"x/A": "1", "x/a": "2"}, why: WhyNames, says: "case"},
		{name: "full folding", base: files{"Straße": "a"}, change: files{"STRASSE": "b"}, why: WhyNames},
		{name: "an old collision", base: files{"src/a": "1", "src/A": "2"}, change: files{"src/b": "3"}},
		{name: "a changed file of an old collision", base: files{"a": "1", "A": "2"}, change: files{"A": "3"}},
		{name: "a rename in case", base: files{"src/auth.ts": "a"}, change: files{"src/auth.ts": "-", "src/Auth.ts": "a"}},
		{name: "device", change: files{"src/aux.c": "x"}, why: WhyNames, says: "device"},
		{name: "device folder", change: files{"nul/x.c": "x"}, why: WhyNames, says: `"nul"`},
		{name: "port", change: files{"COM1.txt": "x"}, why: WhyNames},
		{name: "no port", change: files{"com10.txt": "x", "auxiliary.c": "x", "community": "x", "con-fig": "x"}},
		{name: "colon", change: files{"a:b": "x"}, why: WhyNames, says: "Windows"},
		{name: "dot", change: files{"a./b": "x"}, why: WhyNames, says: `"a."`},
		{name: "no normal form C", change: files{"cafe\u0301": "b"}, why: WhyNames, says: "normal form C"},
		{name: "distinct names only", change: files{"a:b": "x"}, guards: Guards{Names: NamesDistinct}},
		{name: "any names", base: files{"a": "x"}, change: files{"A": "x"}, guards: Guards{Names: NamesAny}},
		{name: "most files", base: many, change: without(19), why: WhyDeletion, says: "19 of the 21 files"},
		{name: "half of them", base: many, change: without(10)},
		{name: "a higher limit", base: many, change: without(15), guards: Guards{MaxDeletion: 80}},
		{name: "moved and renamed", base: many, change: moved},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(anything)
			base := r.begin
			if c.base != nil {
				base = r.commit(base, c.base)
				r.run("update-ref", "refs/heads/main", base)
			}
			config := r.config("merger")
			config.Guards = c.guards
			r.start(config)
			s := Submission{ID: "s", Head: r.commit(base, c.change)}
			o := r.result(r.submit(s))
			if c.why == "" {
				if o.Code != Landed || o.Landing.Allowed != nil {
					t.Errorf("%+v", o)
				}
				return
			}
			if o.Reason != c.why || !strings.Contains(o.Message, c.says) || !strings.Contains(o.Message, "allow") {
				t.Fatalf("%+v, want %s and %q", o, c.why, c.says)
			}
			s = Submission{ID: "again", Resubmits: "s", Head: s.Head, Allow: []Why{c.why}}
			if o := r.result(r.submit(s)); o.Code != Landed || !slices.Equal(o.Landing.Allowed, s.Allow) ||
				o.Landing.Agent != "author" || !strings.Contains(o.Message, string(c.why)) {
				t.Errorf("allowed: %+v", o)
			}
		})
	}
}

// A branch that has landed and was reverted comes back: git would land only what is newer.
func TestRevertedBranch(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	r.start(r.config("merger"))
	land := func(id, head string) {
		t.Helper()
		if o := r.result(r.submit(Submission{ID: id, Head: head})); o.Code != Landed {
			t.Fatalf("%s: %+v", id, o)
		}
	}
	branch := r.commit(r.begin, files{"feature": "1\n", "other": "1\n"})
	land("feature", branch)
	landing := r.head()
	fix := r.commit(branch, files{"feature": "2\n"})
	land("in-between", r.commit(r.begin, files{"x": "x\n"}))
	repo := &Repository{r.git}
	if found, err := repo.Reverted(t.Context(), r.head(), fix, []string{"feature"}); found != nil || err != nil {
		t.Fatalf("before the revert: %+v, %v", found, err)
	}
	// By hand, without a message; the same branch in between is not in the way.
	land("revert", r.commit(r.head(), files{"feature": "-", "other": "-"}))
	o := r.result(r.submit(Submission{ID: "fix", Head: fix}))
	if o.Reason != WhyReverted || !strings.Contains(o.Message, landing[:12]) {
		t.Fatalf("%+v, want %s", o, landing)
	}
	if o := r.result(r.submit(Submission{ID: "fix2", Head: fix, Allow: []Why{WhyReverted}})); o.Code == Landed {
		t.Fatalf("git reports a conflict here: %+v", o) // modify/delete
	}
	// A branch that takes back its own landing goes on.
	own := r.commit(r.begin, files{"own": "1\n"})
	land("own", own)
	undo := r.commit(own, files{"own": "-"})
	land("undo", undo)
	land("on", r.commit(undo, files{"own-2": "1\n"}))
	// The revert is reverted: nothing is missing.
	land("back", r.commit(r.head(), files{"feature": "1\n", "other": "1\n"}))
	land("fix-3", fix)
}

// What has landed, and is not on the target any more, can be submitted again. What was reverted is not "empty".
func TestLandedAndGone(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	head := r.commit(r.begin, files{"f": "1\n"})
	submit := func(allow ...Why) Outcome {
		t.Helper()
		task, err := r.author.Submit(t.Context(), client.TaskSpec{
			Queue: web.Queue(), Payload: Submission{ID: "s", Head: head, Allow: allow},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.result(task.ID)
	}
	stop := r.start(r.config("merger"))
	if o := submit(); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	if o := submit(); o.Reason != WhyPolicy || !strings.Contains(o.Message, "has landed") {
		t.Errorf("still there: %+v", o)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.run("update-ref", "refs/heads/main", r.begin) // by force, beside the merger
	stop = r.start(r.config("second"))
	if o := submit(); o.Code != Landed || o.Landing.Parent != r.begin {
		t.Errorf("set back: %+v", o)
	}
	undo := r.commit(r.head(), files{"f": "-"})
	if o := r.result(r.submit(Submission{ID: "undo", Head: undo})); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	other := r.result(r.submit(Submission{ID: "other", Head: head}))
	if other.Reason != WhyReverted || !strings.Contains(other.Message, "Revert that commit") {
		t.Errorf("reverted: %+v", other)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// The table of git revert: what its message names, and what counts as the submission's own.
func TestRevertedByMessage(t *testing.T) {
	r := newRig(t)
	repo := &Repository{r.git}
	message := func(parent, text string, changes files) string {
		id := r.commit(parent, changes)
		return r.run("commit-tree", "-p", parent, "-m", text, id+"^{tree}")
	}
	work := r.commit(r.begin, files{"a": "1\n"})
	revert := message(work, "Revert \"change\"\n\nThis reverts commit "+work+".", files{"a": "-", "b": "later\n"})
	twice := message(revert, "Reapply \"change\"\n\nThis reverts commit "+revert+".", files{"a": "1\n"})
	other := message(work, "This reverts commit "+r.begin+".", files{"c": "1\n"})
	head := r.commit(work, files{"a": "2\n"})
	for _, c := range []struct {
		name, target, head string
		paths              []string
		want               bool
	}{
		{"reverted", revert, head, []string{"a"}, true},
		{"other paths", revert, head, []string{"z"}, false},
		{"reverted twice", twice, head, []string{"a"}, false},
		{"seen", revert, r.commit(revert, files{"a": "2\n"}), []string{"a"}, false},
		{"another commit", other, head, []string{"a"}, false},
		{"not on the target", work, head, []string{"a"}, false},
	} {
		found, err := repo.Reverted(t.Context(), c.target, c.head, c.paths)
		if err != nil || (found != nil) != c.want || c.want && (found.Commit != work || found.By != revert) {
			t.Errorf("%s: %+v, %v, want %v", c.name, found, err, c.want)
		}
	}
}

// A path that another agent holds does not land, also if the lease is taken while the submission is checked. The
// author's own leases are its own.
func TestHeldPaths(t *testing.T) {
	r := newRig(t)
	var holder atomic.Pointer[string]
	hold := func(agent string) { holder.Store(&agent) }
	r.work(func(tree files) bool {
		if tree["late"] != "" {
			hold("other") // while it is checked
		}
		return true
	})
	config := r.config("merger")
	config.Guards.Held = func(_ context.Context, paths []string) ([]Holder, error) {
		if agent := holder.Load(); agent != nil && *agent != "" {
			return []Holder{{paths[0], "repo:web/" + paths[0], *agent, "rewrite \"it\""}}, nil
		}
		return nil, nil
	}
	stop := r.start(config)
	submit := func(id, path string) Outcome {
		t.Helper()
		return r.result(r.submit(Submission{ID: id, Head: r.commit(r.begin, files{path: id + "\n"})}))
	}
	hold("other")
	o := submit("one", "a")
	want := `"a" is held by agent "other" ("rewrite \"it\""), with a lease on repo:web/a`
	if o.Reason != WhyHeld || !strings.Contains(o.Message, want) || strings.Contains(o.Message, "--allow") {
		t.Errorf("%+v, want %s", o, want)
	}
	hold("author")
	if o := submit("two", "b"); o.Code != Landed || o.Landing.Held != nil {
		t.Errorf("the author's own lease: %+v", o)
	}
	hold("")
	if o := submit("three", "late"); o.Reason != WhyHeld || o.Tries != 1 {
		t.Errorf("taken while it was checked: %+v", o)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	config.Guards.NameHeld = true
	r.start(config)
	o = submit("four", "d")
	if o.Code != Landed || len(o.Landing.Held) != 1 || !strings.Contains(o.Message, "is held by") {
		t.Errorf("named only: %+v", o)
	}
}
