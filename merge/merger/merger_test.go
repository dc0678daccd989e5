package merger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/merge"
)

func anything(files) bool { return true }

// good refuses trees with a file named bad, and those where one file asks for another that is not there.
func good(tree files) bool {
	if _, bad := tree["bad"]; bad {
		return false
	}
	for _, text := range tree {
		if name, ok := strings.CutPrefix(text, "needs "); ok {
			if _, there := tree[strings.TrimSpace(name)]; !there {
				return false
			}
		}
	}
	return true
}

func TestSubmissionsLandInOrder(t *testing.T) {
	r := newRig(t)
	r.work(good)
	var ids []string
	var results []func() Outcome
	for i := range 12 {
		id := fmt.Sprintf("s-%02d", i)
		ids = append(ids, id)
		task := r.submit(Submission{ID: id, Head: r.commit(r.begin, files{id: id + "\n"})})
		results = append(results, func() Outcome { return r.result(task) })
	}
	r.start(r.config("merger"))
	for i, result := range results {
		o := result()
		if o.Code != Landed || o.Landing.Sequence != uint64(i+1) || o.Landing.Agent != "author" {
			t.Fatalf("%s: %+v", ids[i], o)
		}
	}
	if got := r.landings(); !slices.Equal(got, ids) {
		t.Errorf("landed %v, want %v", got, ids)
	}
	var target Target
	if _, err := read(t.Context(), r.author, web.Key(), &target); err != nil {
		t.Fatal(err)
	}
	if target.Head != r.head() || target.Sequence != 12 || target.Staged != nil {
		t.Errorf("the target's document is %+v, and the head %s", target, r.head())
	}
	var landing Landing
	if found, err := read(t.Context(), r.author, web.LandingKey(12), &landing); err != nil || !found ||
		landing.Commit != r.head() || landing.Submission != "s-11" {
		t.Errorf("landing 12: %+v, %v, %v", landing, found, err)
	}
}

// A bad submission goes back with the end of the check's report, and keeps no other from landing.
func TestBadSubmissionGoesBack(t *testing.T) {
	r := newRig(t)
	r.work(good)
	first := r.submit(Submission{ID: "first", Head: r.commit(r.begin, files{"first": "1\n"})})
	bad := r.submit(Submission{ID: "bad-one", Head: r.commit(r.begin, files{"bad": "1\n"})})
	last := r.submit(Submission{ID: "last", Head: r.commit(r.begin, files{"last": "1\n"})})
	r.start(r.config("merger"))
	o := r.result(bad)
	if o.Code != Returned || o.Reason != WhyChecks || len(o.Checks) != 1 || !strings.Contains(o.Checks[0].Tail, "bad") ||
		o.Tries != 1 || o.Against == nil || o.Against.Sequence != 1 {
		t.Errorf("the bad one: %+v", o)
	}
	if a, b := r.result(first), r.result(last); a.Code != Landed || b.Code != Landed {
		t.Errorf("the good ones: %+v, %+v", a, b)
	}
	if got := r.landings(); !slices.Equal(got, []string{"first", "last"}) {
		t.Errorf("landed %v", got)
	}
	var v Verdict
	tree := r.run("rev-parse", r.head()+"^{tree}")
	if found, err := read(t.Context(), r.author, web.VerdictKey(tree, "check"), &v); err != nil || !found || !v.Passed {
		t.Errorf("the verdict on the head's tree: %+v, %v, %v", v, found, err)
	}
}

// A conflict with a change that lands in the same move names its author, too.
func TestConflictWithinOneMove(t *testing.T) {
	r := newRig(t)
	first := r.submit(Submission{ID: "first", Head: r.commit(r.begin, files{"README": "one\n2\nthree\n"})})
	second := r.submit(Submission{ID: "second", Head: r.commit(r.begin, files{"README": "one\nzwei\nthree\n"})})
	third := r.submit(Submission{ID: "third", Head: r.commit(r.begin, files{"third": "3\n"})})
	landed := make(chan struct{})
	r.work(func(tree files) bool {
		if _, all := tree["third"]; !all {
			<-landed // the chain of first alone has no verdict before
		}
		return true
	})
	r.start(r.config("merger"))
	o := r.result(second)
	if a, b := r.result(first), r.result(third); a.Code != Landed || b.Code != Landed {
		t.Errorf("%+v, %+v", a, b)
	}
	close(landed)
	if o.Reason != WhyConflict || len(o.Conflicts) != 1 || len(o.Conflicts[0].LandedBy) != 1 ||
		o.Conflicts[0].LandedBy[0].Sequence != 1 || !strings.Contains(o.Message, `"change first"`) {
		t.Errorf("%+v", o)
	}
}

// A conflict goes back with hunks and the agent that landed the other change, and comes back to its place.
func TestConflictComesBackToItsPlace(t *testing.T) {
	r := newRig(t)
	first := r.submit(Submission{ID: "first", Head: r.commit(r.begin, files{"README": "one\n2\nthree\n"})})
	mine := r.commit(r.begin, files{"README": "one\nzwei\nthree\n"})
	second := r.submit(Submission{ID: "second", Head: mine})
	r.work(good)
	stop := r.start(r.config("merger"))
	r.result(first)
	o := r.result(second)
	if o.Code != Returned || o.Reason != WhyConflict || len(o.Conflicts) != 1 ||
		!strings.Contains(o.Conflicts[0].Hunks, "zwei") || len(o.Conflicts[0].LandedBy) != 1 ||
		o.Conflicts[0].LandedBy[0].Agent != "author" || !strings.Contains(o.Message, `"change first"`) {
		t.Fatalf("%+v", o)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	third := r.submit(Submission{ID: "third", Head: r.commit(r.begin, files{"third": "3\n"})})
	again := r.submit(Submission{Resubmits: "second", Head: r.commit(r.head(), files{"README": "one\nzwei\nthree\n"})})
	r.start(r.config("merger-2"))
	a, b := r.result(again), r.result(third)
	if a.Code != Landed || b.Code != Landed || a.Submission != "second" {
		t.Fatalf("%+v, %+v", a, b)
	}
	if got := r.landings(); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("landed %v: the place was not kept", got)
	}
}

// Two changes that are good apart are bad together: the later one goes back.
func TestSemanticConflict(t *testing.T) {
	r := newRig(t)
	base := r.commit(r.begin, files{"lib": "1\n"})
	zero := r.submit(Submission{ID: "zero", Head: base})
	renames := r.submit(Submission{ID: "renames", Head: r.commit(base, files{"lib": "-", "library": "1\n"})})
	uses := r.submit(Submission{ID: "uses", Head: r.commit(base, files{"user": "needs lib\n"})})
	r.work(good)
	r.start(r.config("merger"))
	if a, b := r.result(zero), r.result(renames); a.Code != Landed || b.Code != Landed {
		t.Fatalf("%+v, %+v", a, b)
	}
	if o := r.result(uses); o.Code != Returned || o.Reason != WhyChecks {
		t.Fatalf("%+v", o)
	}
}

// Two migrations take the same number.
func TestTakenNumberGoesBack(t *testing.T) {
	r := newRig(t)
	r.work(good)
	base := r.commit(r.begin, files{"db/migrations/0041_a.sql": "a\n", "db/migrations/0042_b.sql": "b\n"})
	r.run("update-ref", "refs/heads/main", base)
	first := r.submit(Submission{ID: "first", Head: r.commit(base, files{"db/migrations/0043_c.sql": "c\n"})})
	second := r.submit(Submission{ID: "second", Head: r.commit(base, files{"db/migrations/0043_d.sql": "d\n"})})
	r.start(r.config("merger"))
	if o := r.result(first); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	o := r.result(second)
	want := "db/migrations/0043_d.sql: number 0043 is taken by 0043_c.sql; 0044 is free"
	if o.Reason != WhySequence || len(o.Sequence) != 1 || o.Sequence[0] != want {
		t.Errorf("%+v, want %q", o, want)
	}
}

// What cannot be a submission goes back at once.
func TestPolicy(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	r.start(r.config("merger"))
	head := r.commit(r.begin, files{"x": "x\n"})
	if o := r.result(r.submit(Submission{ID: "mine", Head: head})); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	based := Submission{ID: "based", Base: r.begin, Style: merge.StyleMerge, Head: r.commit(r.begin, files{"b": "b\n"})}
	if o := r.result(r.submit(based)); o.Code != Landed {
		t.Fatalf("a merge with a base: %+v", o)
	}
	for _, c := range []struct {
		s    Submission
		want string
	}{
		{Submission{ID: "A", Head: head}, "cannot be read"},
		{Submission{ID: "x", Head: "HEAD"}, "cannot be read"},
		{Submission{ID: "y", Head: strings.Repeat("1", 40)}, "lacks the commit or file"},
		{Submission{ID: "v", Head: head, Style: "rebase"}, "cannot be read"},
		{Submission{ID: "u", Head: head, Message: "a\x00b"}, "cannot be read"},
		{Submission{ID: "t", Head: r.run("rev-parse", head+"^{tree}")}, "commit"},
		{Submission{ID: "z", Resubmits: "none", Head: head}, "was returned"},
		{Submission{ID: "w", Resubmits: "mine", Head: head}, "only a returned one"},
		{Submission{ID: "mine", Head: r.begin}, "belongs to"},
		{Submission{ID: "again", Head: head}, "already"},
	} {
		if o := r.result(r.submit(c.s)); o.Code != Returned || o.Reason != WhyPolicy || !strings.Contains(o.Message, c.want) {
			t.Errorf("%+v: %+v, want %q", c.s, o, c.want)
		}
	}
}

// A workspace that submits again, under another id, gets the place of its submission that was returned last.
func TestWorkspaceKeepsItsPlace(t *testing.T) {
	r := newRig(t)
	r.work(good)
	bad := r.submit(Submission{ID: "fix-1", Workspace: "fix", Head: r.commit(r.begin, files{"bad": "1\n"})})
	stop := r.start(r.config("merger"))
	if o := r.result(bad); o.Code != Returned {
		t.Fatalf("%+v", o)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	other := r.submit(Submission{ID: "other", Workspace: "other", Head: r.commit(r.begin, files{"o": "1\n"})})
	again := r.submit(Submission{ID: "fix-2", Workspace: "fix", Head: r.commit(r.begin, files{"f": "1\n"})})
	r.start(r.config("merger-2"))
	if a, b := r.result(again), r.result(other); a.Code != Landed || a.Submission != "fix-1" || b.Code != Landed {
		t.Errorf("%+v, %+v", a, b)
	}
	if got := r.landings(); !slices.Equal(got, []string{"fix-1", "other"}) {
		t.Errorf("landed %v", got)
	}
	next := r.submit(Submission{ID: "fix-3", Workspace: "fix", Head: r.commit(r.head(), files{"g": "1\n"})})
	if o := r.result(next); o.Code != Landed || o.Submission != "fix-3" {
		t.Errorf("a submission after the landing: %+v", o)
	}
}

// With a rule two submissions that take one number both land, and the second one's author learns the new name.
func TestRenumber(t *testing.T) {
	r := newRig(t)
	r.work(good)
	c := r.config("merger")
	profile, err := merge.NewProfile(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := merge.ReadRenumber("migrations/{n:4}_{name}.sql=")
	if err != nil {
		t.Fatal(err)
	}
	profile.Renumbers = []merge.Renumber{rule}
	b, err := merge.Open(t.Context(), merge.Config{Repository: r.git.Dir, Profile: profile})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	c.Boundary, c.Profile = b, profile.Digest()
	base := r.commit(r.begin, files{"migrations/0001_x.sql": "x\n", "migrations/0002_y.sql": "y\n"})
	r.run("update-ref", "refs/heads/main", base)
	first := r.submit(Submission{ID: "first", Head: r.commit(base, files{"migrations/0003_a.sql": "a\n"})})
	second := r.submit(Submission{ID: "second", Head: r.commit(base, files{"migrations/0003_b.sql": "b\n"})})
	r.start(c)
	if o := r.result(first); o.Code != Landed || len(o.Landing.Renamed) != 0 {
		t.Errorf("%+v", o)
	}
	o := r.result(second)
	if o.Code != Landed || !strings.Contains(o.Message, `"migrations/0003_b.sql" is "migrations/0004_b.sql" there`) {
		t.Errorf("%+v", o)
	}
	if text := r.run("cat-file", "blob", "main:migrations/0004_b.sql"); text != "b" {
		t.Errorf("the file has %q", text)
	}
}

// Each failed check also runs on the submission's own tree: a change that is good alone has passed_alone.
func TestPassedAlone(t *testing.T) {
	r := newRig(t)
	r.work(good)
	r.start(r.config("merger"))
	gone := Submission{ID: "gone", Head: r.commit(r.begin, files{"README": "-", "x": "x\n"})}
	if o := r.result(r.submit(gone)); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	together := r.result(r.submit(Submission{ID: "together", Head: r.commit(r.begin, files{"user": "needs README\n"})}))
	if len(together.Checks) != 1 || !together.Checks[0].PassedAlone ||
		!strings.Contains(together.Message, "bad together") {
		t.Errorf("good alone: %+v", together)
	}
	bad := r.result(r.submit(Submission{ID: "bad", Head: r.commit(r.begin, files{"bad": "1\n"})}))
	if len(bad.Checks) != 1 || bad.Checks[0].PassedAlone || strings.Contains(bad.Message, "bad together") {
		t.Errorf("bad alone: %+v", bad)
	}
}
