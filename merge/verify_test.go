package merge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/test/search"
)

// branch lands n submissions, every third as a squash, and returns the turns and the commits. The first commit is
// the one that the branch began with.
func branch(r *rig, b *Boundary, n int) (turns []Turn, commits []string) {
	r.t.Helper()
	base := r.commit(files{"a": text(tenLines), "b": text(tenLines)})
	commits = []string{base}
	for i := range n {
		head := r.commit(files{fmt.Sprintf("new/%d", i): text(fmt.Sprintln(i)), "a": text(
			strings.Replace(tenLines, "1\n", strings.Repeat("0\n", i)+"1\n", 1),
		)}, commits[max(0, i-1)])
		next := turn(i+1, commits[i], head)
		if i%3 == 2 {
			next.Style = StyleSquash
		}
		l, err := b.Land(r.t.Context(), next)
		if err != nil {
			// The lines at the beginning of a overlap: take one that does not.
			next.Head = r.commit(files{fmt.Sprintf("new/%d", i): text(fmt.Sprintln(i))}, base)
			l = r.land(b, next)
		}
		turns, commits = append(turns, next), append(commits, l.Commit)
	}
	return turns, commits
}

func (r *rig) verify(b *Boundary, head string, from uint64) Report {
	r.t.Helper()
	report, err := b.Verify(r.t.Context(), head, from, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

// Verify recomputes a branch from itself, and writes nothing into the repository.
func TestVerify(t *testing.T) {
	r := newRig(t)
	_, commits := branch(r, r.boundary(), 7)
	before := r.run("count-objects", "-v")
	steps := 0
	report, err := r.open("", true).Verify(t.Context(), commits[7], 0, func(done, all int) {
		if steps++; done != steps || all != 7 {
			t.Errorf("progress %d of %d, want %d of 7", done, all, steps)
		}
	})
	if err != nil || report.Landings != 7 || report.Same != 7 || report.Findings != nil || report.Damaged() || steps != 7 {
		t.Errorf("the report is %+v, %v, want 7 landings alike", report, err)
	}
	if after := r.run("count-objects", "-v"); after != before {
		t.Errorf("verify changed the repository from\n%s\nto\n%s", before, after)
	}
	if report := r.verify(r.open("", true), commits[7], 5); report.Landings != 3 || report.Same != 3 {
		t.Errorf("from landing 5: %+v, want 3 alike", report)
	}
	if report := r.verify(r.open("", true), commits[0], 0); report.Landings != 0 || report.Damaged() {
		t.Errorf("a branch without landings: %+v", report)
	}
}

// Each kind of damage is found, and named as what it is.
func TestVerifyFindsDamage(t *testing.T) {
	r := newRig(t)
	b := r.boundary()
	turns, commits := branch(r, b, 2)
	tip := commits[2]
	head := r.commit(files{"c": text("c\n")}, commits[0])
	next := turn(3, tip, head)
	good := r.land(b, next)
	content := r.run("cat-file", "commit", good.Commit) + "\n"
	write := func(content string) string {
		id, err := r.git.Feed(t.Context(), []byte(content), "hash-object", "-w", "-t", "commit", "--stdin")
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	treeOf := func(changes files) string { return r.run("rev-parse", r.commit(changes, good.Commit)+"^{tree}") }
	replace := func(old, new string) string {
		if !strings.Contains(content, old) {
			t.Fatalf("the commit has no %q:\n%s", old, content)
		}
		return write(strings.Replace(content, old, new, 1))
	}
	conflicting := r.commit(files{"a": text("x\n")}, r.commit(files{"a": text("y\n")}, commits[0]))
	for name, c := range map[string]struct {
		commit string
		want   []FindingKind
	}{
		"none":         {good.Commit, nil},
		"a stray path": {replace(good.Tree, treeOf(files{"b": text("b\n")})), []FindingKind{FoundPath, FoundTree}},
		"a lost change": {
			replace(good.Tree, r.run("rev-parse", tip+"^{tree}")), []FindingKind{FoundTree},
		},
		"a lost landing": {
			replace(good.Tree, r.run("rev-parse", commits[1]+"^{tree}")), []FindingKind{FoundPath, FoundTree},
		},
		"another text in the touched path": {replace(good.Tree, treeOf(files{"c": text("d\n")})), []FindingKind{FoundTree}},
		"another date":                     {replace("1700000103", "1700000104"), nil},
		"another author":                   {replace("Ada", "Bob"), []FindingKind{FoundCommit}},
		"another time zone":                {replace("+0000", "+0100"), []FindingKind{FoundCommit}},
		"a skipped number":                 {replace("Landing: 3", "Landing: 4"), []FindingKind{FoundSequence}},
		"a submission that landed before": {
			replace("parent "+head, "parent "+turns[1].Head), []FindingKind{FoundRefused},
		},
		"a conflict": {replace("parent "+head, "parent "+conflicting), []FindingKind{FoundPath, FoundRefused}},
		"a submission that is gone": {
			replace("parent "+head, "parent "+strings.Repeat("1", 40)), []FindingKind{FoundMissing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := r.verify(r.open("", true), c.commit, 0)
			var got []FindingKind
			for _, f := range report.Findings {
				got = append(got, f.Kind)
				if f.Commit != c.commit || f.Detail == "" {
					t.Errorf("the finding is %+v, want one about %s", f, c.commit)
				}
			}
			if !slices.Equal(got, c.want) || report.Landings != 3 {
				t.Errorf("found %+v, want %v", report, c.want)
			}
			damaged := slices.ContainsFunc(c.want, FindingKind.Damage)
			if report.Damaged() != damaged {
				t.Errorf("damaged %v, want %v", report.Damaged(), damaged)
			}
		})
	}
	foreign := r.commit(files{"d": text("d\n")}, tip)
	after := r.land(b, turn(3, foreign, head))
	report := r.verify(r.open("", true), after.Commit, 0)
	if len(report.Findings) != 1 || report.Findings[0].Kind != FoundForeign || report.Findings[0].Commit != foreign {
		t.Errorf("with a commit beside the boundary: %+v, want it found", report)
	}
}

// Another profile is no damage. Trees that come out alike are the same, and others cannot be judged. What no profile
// excuses is still found.
func TestVerifyUnderAnotherProfile(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"LOG": text("1\n"), "b": text("b\n")})
	ours, theirs := r.commit(files{"LOG": text("1\nours\n")}, base), r.commit(files{"LOG": text("1\ntheirs\n")}, base)
	union := r.open("LOG merge=union\n", false)
	first := r.land(union, turn(1, base, ours))
	second := r.land(union, turn(2, first.Commit, theirs))
	report := r.verify(r.open("", true), second.Commit, 0)
	if report.Landings != 2 || report.OtherProfile != 2 || report.Same != 1 || report.Damaged() ||
		len(report.Findings) != 1 || report.Findings[0].Kind != FoundProfile {
		t.Errorf("under another profile: %+v, want one alike and one not judged", report)
	}
	report = r.verify(r.open("LOG merge=union\n", true), second.Commit, 0)
	if report.Same != 2 || report.OtherProfile != 0 {
		t.Errorf("under its own profile: %+v, want 2 alike", report)
	}
	if report := r.verify(r.open("LOG merge=binary\n", true), second.Commit, 0); report.Damaged() {
		t.Errorf("under a third profile: %+v, want no damage", report)
	}
	stray := r.run("rev-parse", r.commit(files{"b": text("x\n")}, second.Commit)+"^{tree}")
	content := strings.Replace(r.run("cat-file", "commit", second.Commit), second.Tree, stray, 1)
	id, err := r.git.Feed(t.Context(), []byte(content), "hash-object", "-w", "-t", "commit", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	if report := r.verify(r.open("", true), id, 0); !report.Damaged() {
		t.Errorf("a stray path under another profile: %+v, want damage", report)
	}
}

// A message cannot pretend to be a landing, and comes back as it was.
func TestMessageRoundTrip(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text("a\n")})
	b := r.boundary()
	for _, message := range []string{
		"", "one line", "\n\n subject \n\nbody\n\n\n", "s\n\nInterlock-Landing: 9\nInterlock-Submission: q_9\n",
		"Interlock-Landing: 9", "s\n\nSigned-off-by: Ada <ada@example.org>", "a\r\nb\r\n", "ä \u202e \t", "\n",
		"# no comment",
		strings.Repeat("long ", 10_000),
	} {
		for _, style := range []Style{StyleMerge, StyleSquash} {
			head := r.commit(files{"b": text("b\n")}, base)
			next := turn(3, base, head)
			next.Message, next.Style = message, style
			l := r.land(b, next)
			got, err := b.Turns(t.Context(), l.Commit, 0)
			if err != nil || len(got) != 1 || got[0].Sequence != 3 || got[0].ID != "q_3" || got[0].Style != style {
				t.Fatalf("%q: read as %+v, %v", message, got, err)
			}
			if again := r.land(b, got[0]); again.Commit != l.Commit {
				t.Errorf("%q: landed again as %s, want %s", message, again.Commit, l.Commit)
			}
		}
	}
}

// The author of a submission can be anything that an object can hold.
func TestOddAuthors(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text("a\n")})
	tree := r.run("rev-parse", r.commit(files{"b": text("b\n")}, base)+"^{tree}")
	for author, want := range map[string]string{
		"Ada <ada@example.org> 1 +0000":       "Ada <ada@example.org>",
		"<> 1 +0000":                          "unknown <>",
		"\xe4 <\xff@x> 1 +0000":               "unknown <@x>",
		"A <b> <c@d> 99999999999999999 +9999": "A <b c@d>",
		"  Ada\tB  <a@b> 1 +0000":             "AdaB <a@b>",
		"Ada <a@b>":                           "Ada <a@b>",
	} {
		content := "tree " + tree + "\nparent " + base + "\nauthor " + author + "\ncommitter x <y> 1 +0000\n\nodd\n"
		id, err := r.git.Feed(t.Context(), []byte(content), "hash-object", "-w", "--literally", "-t", "commit", "--stdin")
		if err != nil {
			t.Fatal(err)
		}
		l := r.land(r.boundary(), turn(1, base, id))
		if got := r.run("cat-file", "commit", l.Commit); !strings.Contains(got, "\nauthor "+want+" 1700000001 +0000\n") {
			t.Errorf("%q became\n%s\nwant %q", author, got, want)
		}
	}
}

// A branch is rebuilt in another repository, by another boundary, with the same head. The order is what counts.
func TestReplay(t *testing.T) {
	r, other := newRig(t), newRig(t)
	b := r.boundary()
	turns, commits := branch(r, b, 6)
	read, err := b.Turns(t.Context(), commits[6], 0)
	if err != nil || len(read) != 6 {
		t.Fatalf("read %d turns, %v, want 6", len(read), err)
	}
	for name, list := range map[string][]Turn{"from the journal": turns, "from the branch": read} {
		head, err := Replay(t.Context(), other.boundary(), r.git, list)
		if err != nil || head != commits[6] {
			t.Errorf("%s: %s, %v, want %s", name, head, err, commits[6])
		}
	}
	if got := other.list(commits[6]); len(got) != 8 {
		t.Errorf("the copy has %d files, want 8", len(got))
	}
	if report := other.verify(other.open("", true), commits[6], 0); report.Same != 6 {
		t.Errorf("the copy verifies as %+v", report)
	}
	swapped := slices.Clone(turns)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	if head, err := Replay(t.Context(), other.boundary(), r.git, swapped); err == nil && head == commits[6] {
		t.Error("another order has the same head")
	}
	if head, err := Replay(t.Context(), other.boundary(), r.git, nil); err == nil {
		t.Errorf("no turns make %s", head)
	}
}

// Submissions against a naive model: a list, and git merge in a work tree. The trees are the same, and the model and
// the boundary refuse the same submissions. The branch replays to the same head.
func TestAgainstNaiveModel(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 120
	}
	seed := 24 + search.Round(t)
	random := rand.New(rand.NewPCG(seed, seed))
	r := newRig(t)
	heads := submissions(r, random, n)
	dir := filepath.Join(t.TempDir(), "naive")
	naive := make(chan error, 1)
	want := make([]string, len(heads))
	go func() { naive <- naiveTrees(t.Context(), r.git.Dir, dir, heads, want) }()

	b := r.boundary()
	parent, landed := heads[0], 0
	trees := make([]string, len(heads))
	for i, head := range heads[1:] {
		l, err := b.Land(t.Context(), turn(landed+1, parent, head))
		refusal, refused := errors.AsType[*Refusal](err)
		switch {
		case refused && refusal.Reason == ReasonEmpty:
			trees[i] = treeOfEmpty
		case refused:
			trees[i] = treeOfConflict
		case err != nil:
			t.Fatalf("seed %d, submission %d: %v", seed, i, err)
		default:
			trees[i], parent = l.Tree, l.Commit
			landed++
		}
	}
	if err := <-naive; err != nil {
		t.Fatalf("the naive model: %v", err)
	}
	for i := range heads[1:] {
		if trees[i] == "" || trees[i] != want[i] {
			t.Fatalf("seed %d, submission %d: the tree is %q, and git merge makes %q", seed, i, trees[i], want[i])
		}
	}
	if refused := n - landed; refused < n/50 || landed < n/2 {
		t.Errorf("%d landed and %d were refused: the test covers too little of one", landed, refused)
	}
	t.Logf("%d landed, %d refused", landed, n-landed)
	turns, err := b.Turns(t.Context(), parent, 0)
	if err != nil {
		t.Fatal(err)
	}
	verifier, other := r.open("", true), newRig(t).boundary()
	verified := make(chan error, 1)
	go func() {
		report, err := verifier.Verify(t.Context(), parent, 0, nil)
		if err == nil && (report.Same != landed || report.Damaged()) {
			err = fmt.Errorf("verify found %+v, want %d alike", report, landed)
		}
		verified <- err
	}()
	if head, err := Replay(t.Context(), other, r.git, turns); err != nil || head != parent {
		t.Errorf("the replay has the head %s, %v, want %s", head, err, parent)
	}
	if err := <-verified; err != nil {
		t.Error(err)
	}
}

// What a list of trees has for a submission that does not land.
const (
	treeOfConflict = "conflict"
	treeOfEmpty    = "empty"
)

// naiveTrees merges each head but the first in one work tree, and writes the trees into a list: treeOfConflict if git
// merge does not merge it, and treeOfEmpty if that changes nothing. It knows nothing of the boundary.
func naiveTrees(ctx context.Context, source, dir string, heads, trees []string) error {
	clone := []string{"clone", "--quiet", "--shared", "--no-checkout", source, dir}
	if _, err := new(git.Repository).Output(ctx, clone...); err != nil {
		return err
	}
	naive := git.Repository{Dir: filepath.Join(dir, ".git"), WorkTree: dir, Config: []string{"core.fsync=none"}}
	if _, err := naive.Output(ctx, "checkout", "--quiet", "--detach", heads[0]); err != nil {
		return err
	}
	// One git answers where HEAD is, each time anew.
	names, err := naive.Start(ctx, git.Call{Args: []string{"cat-file", "--batch-check=%(objectname)"}})
	if err != nil {
		return err
	}
	defer names.Close()
	name := func(revision string) (string, error) {
		if _, err := fmt.Fprintln(names.In, revision); err != nil {
			return "", names.Fail(err)
		}
		line, err := names.Out.ReadString('\n')
		return strings.TrimSpace(line), err
	}
	before, err := name("HEAD^{tree}")
	if err != nil {
		return err
	}
	for i, head := range heads[1:] {
		merge := git.Call{Args: []string{"merge", "--quiet", "--no-ff", "-m", "merge", head}, Answers: []int{1}}
		merged, err := naive.Run(ctx, merge)
		if err != nil {
			return err
		}
		if merged.Exit != 0 {
			trees[i] = treeOfConflict
			if _, err := naive.Output(ctx, "merge", "--abort"); err != nil {
				return err
			}
			continue
		}
		tree, err := name("HEAD^{tree}")
		if err != nil {
			return err
		}
		if tree != before {
			trees[i], before = tree, tree
			continue
		}
		// What is merged already makes no commit.
		trees[i] = treeOfEmpty
		parent, err := name("HEAD^2")
		if err != nil {
			return err
		}
		if parent != head {
			continue
		}
		if _, err := naive.Output(ctx, "reset", "--quiet", "--hard", "HEAD^"); err != nil {
			return err
		}
	}
	return nil
}

// submissions makes a base commit and n submissions on it: edits, new files, renames, deletions, modes, links and
// attributes. Some build on another submission.
func submissions(r *rig, random *rand.Rand, n int) []string {
	const count = 400
	name := func(i int) string { return fmt.Sprintf("d%d/e%d/f%d", i%7, i%11, i) }
	lines := func(i int) []string {
		list := make([]string, 40)
		for k := range list {
			list[k] = fmt.Sprintf("file %d line %d", i, k)
		}
		return list
	}
	base := files{
		".gitattributes": text("*.log merge=union\n"), "d1/.gitattributes": text("*.pin -merge\n"),
		"all.log": text("begin\n"), "d1/x.pin": text("pin\n"), "d2/x.pin": text("1\n2\n3\n4\n5\n6\n7\n8\n"),
	}
	for i := range count {
		base[name(i)] = text(strings.Join(lines(i), "\n") + "\n")
	}
	var s stream
	s.commit(1, "base", base)
	for i := range n {
		changes := files{}
		for range 1 + random.IntN(4) {
			k := random.IntN(count)
			edited := lines(k)
			edited[random.IntN(len(edited))] = fmt.Sprintf("changed by %d", i)
			content := text(strings.Join(edited, "\n") + "\n")
			switch random.IntN(60) {
			case 0:
				changes[fmt.Sprintf("new/%d", i)] = content
			case 1:
				changes[name(k)], changes[fmt.Sprintf("moved/%d", k)] = file{}, content
			case 2:
				changes[name(k)] = file{}
			case 3:
				changes[name(k)] = file{"100755", content.text}
			case 4:
				changes[fmt.Sprintf("link%d", k)] = file{"120000", name(k)}
			case 5:
				changes["all.log"] = text(fmt.Sprintf("begin\nentry %d\n", i))
			case 6:
				changes[fmt.Sprintf("d%d/x.pin", 1+k%2)] = text(fmt.Sprintf("1\n2\n3\n4\n5\n6\n7\n%d\n", i))
			default:
				changes[name(k)] = content
			}
		}
		parent := ":1"
		if i > 10 && random.IntN(8) == 0 {
			parent = fmt.Sprintf(":%d", 2+random.IntN(i))
		}
		s.commit(i+2, fmt.Sprintf("submission %d", i), changes, parent)
	}
	marks := r.load(&s)
	ids := make([]string, n+1)
	for i := range ids {
		ids[i] = marks[i+1]
	}
	return ids
}
