package merge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

const tenLines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

// A landing is a merge commit. The author is the submission's, the dates are the turn's, and the trailers name
// the rest.
func TestLandMerge(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text(tenLines), "b": text("b\n")})
	head := r.commit(files{"a": text("one\n" + tenLines[2:])}, base)
	parent := r.commit(files{"a": text(tenLines[:len(tenLines)-3] + "ten\n"), "c": text("c\n")}, base)
	b := r.boundary()
	l := r.land(b, turn(7, parent, head))
	if !slices.Equal(l.Paths, []string{"a"}) || l.Sequence != 7 || l.Submission != "q_7" || l.Parent != parent {
		t.Errorf("the landing is %+v, want the path a", l)
	}
	want := map[string]string{
		"a": "100644 one\n" + tenLines[2:len(tenLines)-4] + "\nten", "b": "100644 b", "c": "100644 c",
	}
	if got := r.list(l.Tree); !maps.Equal(got, want) {
		t.Errorf("the tree is %q, want %q", got, want)
	}
	digest := b.digest
	wantCommit := "tree " + l.Tree + "\nparent " + parent + "\nparent " + head + "\n" +
		"author Ada <ada@example.org> 1700000007 +0000\ncommitter interlock <interlock@localhost> 1700000107 +0000\n\n" +
		"commit 2\n\nInterlock-Landing: 7\nInterlock-Submission: q_7\nInterlock-Profile: " + digest
	if got := r.run("cat-file", "commit", l.Commit); got != wantCommit {
		t.Errorf("the commit is\n%s\nwant\n%s", got, wantCommit)
	}
	trailers := r.run("show", "-s", "--format=%(trailers:only)", l.Commit)
	if !strings.Contains(trailers, "Interlock-Landing: 7") {
		t.Errorf("git finds the trailers %q", trailers)
	}
	if again := r.land(b, turn(7, parent, head)); again.Commit != l.Commit {
		t.Errorf("repeated: %s, want %s", again.Commit, l.Commit)
	}
}

// A squash has one parent. An agent that goes on after a squash names its last head as base, and is not in conflict
// with itself.
func TestLandSquash(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text(tenLines)})
	first := r.commit(files{"a": text("first\n" + tenLines[2:])}, base)
	second := r.commit(files{"a": text("second\n" + tenLines[2:])}, first)
	b := r.boundary()
	one := turn(1, base, first)
	one.Style, one.Message = StyleSquash, "\n\nChange a\n\nFor the second time.\n\n"
	l := r.land(b, one)
	commit := r.run("cat-file", "commit", l.Commit)
	for _, want := range []string{
		"\nparent " + base + "\nauthor", "\n\nChange a\n\nFor the second time.\n\nInterlock-Landing: 1\n",
		"\nInterlock-Head: " + first,
	} {
		if !strings.Contains(commit, want) {
			t.Errorf("the commit is\n%s\nwithout %q", commit, want)
		}
	}
	two := turn(2, l.Commit, second)
	two.Style = StyleSquash
	if refusal := r.refused(b, two); refusal.Reason != ReasonConflict {
		t.Errorf("without a base: %v, want a conflict", refusal)
	}
	two.Base = first
	l = r.land(b, two)
	if got := r.list(l.Tree)["a"]; got != "100644 second\n"+strings.TrimSuffix(tenLines[2:], "\n") {
		t.Errorf("a is %q", got)
	}
	two.Base = base
	if refusal := r.refused(b, two); refusal.Reason != ReasonConflict {
		t.Errorf("with the first base: %v, want a conflict", refusal)
	}
	two.Base = l.Commit
	if refusal := r.refused(b, two); refusal.Reason != ReasonBase {
		t.Errorf("with a base beside the head: %v, want %s", refusal, ReasonBase)
	}
}

// What a merge makes of files that are more than text.
func TestLandKinds(t *testing.T) {
	long := strings.Repeat("a line of text\n", 30)
	link := func(to string) file { return file{"120000", to} }
	module := func(c string) file { return file{"160000", strings.Repeat(c, 40)} }
	tests := []struct {
		name         string
		base         files
		ours, theirs files
		want         map[string]string // absent paths are checked, too
		kind         Kind              // of the first conflict
		path         string
		paths        []string // that the landing changes
	}{
		{
			name: "rename by the target against edit", base: files{"old": text(long + "end\n")},
			ours: files{"old": {}, "new": text(long + "end\n")}, theirs: files{"old": text("begin\n" + long + "end\n")},
			want: map[string]string{"new": "100644 begin\n" + long + "end"}, paths: []string{"new"},
		},
		{
			name: "rename by the submission against edit", base: files{"old": text(long + "end\n")},
			ours:   files{"old": text("begin\n" + long + "end\n")},
			theirs: files{"old": {}, "new": text(long + "end\n")},
			want:   map[string]string{"new": "100644 begin\n" + long + "end"}, paths: []string{"new", "old"},
		},
		{
			name:   "folder renamed by the target, file added by the submission",
			base:   files{"d/a": text(long), "d/b": text(long + "b")},
			ours:   files{"d/a": {}, "d/b": {}, "e/a": text(long), "e/b": text(long + "b")},
			theirs: files{"d/new": text("new\n")},
			kind:   KindDirectoryRename, path: "e/new",
		},
		{
			name: "mode against edit", base: files{"run": text(long)},
			ours: files{"run": text(long + "end\n")}, theirs: files{"run": {"100755", long}},
			want: map[string]string{"run": "100755 " + long + "end"}, paths: []string{"run"},
		},
		{
			name: "link against nothing", base: files{"link": link("a")},
			ours: files{"x": text("x\n")}, theirs: files{"link": link("../../etc/passwd")},
			want: map[string]string{"x": "100644 x", "link": "120000 ../../etc/passwd"}, paths: []string{"link"},
		},
		{
			name: "link against link", base: files{"link": link("a")}, ours: files{"link": link("b")},
			theirs: files{"link": link("c")}, kind: KindContent, path: "link",
		},
		{
			name: "file against link", base: files{"x": text("x\n")}, ours: files{"x": text("y\n")},
			theirs: files{"x": link("x")}, kind: KindType, path: "x",
		},
		{
			name: "case", base: files{"Readme": text("1\n")}, ours: files{"README": text("2\n")},
			theirs: files{"readme": text("3\n")},
			want:   map[string]string{"Readme": "100644 1", "README": "100644 2", "readme": "100644 3"},
			paths:  []string{"readme"},
		},
		{
			name: "composed and decomposed", base: files{"x": text("x\n")}, ours: files{"\u00e4": text("NFC\n")},
			theirs: files{"a\u0308": text("NFD\n")},
			want:   map[string]string{"x": "100644 x", "\u00e4": "100644 NFC", "a\u0308": "100644 NFD"},
			paths:  []string{"a\u0308"},
		},
		{
			name: "odd names", base: files{"x": text("x\n")}, ours: files{"y": text("y\n")},
			theirs: files{"--upload-pack=touch x": text("1\n"), "a\nb": text("2\n"), ":(top)*": text("3\n"), " ": text("4\n")},
			want: map[string]string{
				"x": "100644 x", "y": "100644 y", "--upload-pack=touch x": "100644 1", "a\nb": "100644 2",
				":(top)*": "100644 3", " ": "100644 4",
			},
			paths: []string{" ", "--upload-pack=touch x", ":(top)*", "a\nb"},
		},
		{
			name: "submodule moved by the submission", base: files{"m": module("1")}, ours: files{"x": text("x\n")},
			theirs: files{"m": module("2")},
			want:   map[string]string{"x": "100644 x", "m": "160000 " + strings.Repeat("2", 40)}, paths: []string{"m"},
		},
		{
			name: "submodule moved by both", base: files{"m": module("1")}, ours: files{"m": module("2")},
			theirs: files{"m": module("3")}, kind: KindSubmodule, path: "m",
		},
		{
			name: "delete against edit", base: files{"x": text(long), "y": text("y\n")}, ours: files{"x": {}},
			theirs: files{"x": text(long + "end\n")}, kind: KindModifyDelete, path: "x",
		},
		{
			name: "edit against delete", base: files{"x": text(long), "y": text("y\n")}, ours: files{"x": text(long + "end\n")},
			theirs: files{"x": {}}, kind: KindModifyDelete, path: "x",
		},
		{
			name: "delete by both", base: files{"x": text(long), "y": text("y\n")}, ours: files{"x": {}},
			theirs: files{"x": {}, "z": text("z\n")}, want: map[string]string{"y": "100644 y", "z": "100644 z"},
			paths: []string{"z"},
		},
		{
			name: "rename against delete", base: files{"x": text(long), "y": text("y\n")},
			ours: files{"x": {}}, theirs: files{"x": {}, "new": text(long)}, kind: KindRenameDelete, path: "new",
		},
		{
			name: "renames apart", base: files{"x": text(long), "y": text("y\n")},
			ours: files{"x": {}, "one": text(long)}, theirs: files{"x": {}, "two": text(long)}, kind: KindRename, path: "one",
		},
		{
			name: "file against folder", base: files{"y": text("y\n")}, ours: files{"x": text("x\n")},
			theirs: files{"x/a": text("a\n")}, kind: KindFileDirectory, path: "x",
		},
		{
			name: "both add", base: files{"y": text("y\n")}, ours: files{"x": text("1\n")}, theirs: files{"x": text("2\n")},
			kind: KindContent, path: "x",
		},
		{
			name: "both edit", base: files{"x": text("0\n")}, ours: files{"x": text("1\n")}, theirs: files{"x": text("2\n")},
			kind: KindContent, path: "x",
		},
		{
			name: "bytes", base: files{"x": text("\x000\n")}, ours: files{"x": text("\x001\n")},
			theirs: files{"x": text("\x002\n")}, kind: KindBinary, path: "x",
		},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			base := r.commit(c.base)
			ours, theirs := r.commit(c.ours, base), r.commit(c.theirs, base)
			b := r.boundary()
			if c.kind == "" {
				l := r.land(b, turn(1, ours, theirs))
				if got := r.list(l.Tree); !maps.Equal(got, c.want) {
					t.Errorf("the tree is %q, want %q", got, c.want)
				}
				if !slices.Equal(l.Paths, c.paths) {
					t.Errorf("the landing changes %q, want %q", l.Paths, c.paths)
				}
				return
			}
			refusal := r.refused(b, turn(1, ours, theirs))
			if refusal.Reason != ReasonConflict || len(refusal.Conflicts) == 0 {
				t.Fatalf("refused with %+v, want conflicts", refusal)
			}
			i := slices.IndexFunc(refusal.Conflicts, func(found Conflict) bool {
				return strings.HasPrefix(found.Path, c.path) && found.Kind == c.kind
			})
			if i < 0 {
				t.Errorf("the conflicts are %+v, want %s at %s", refusal.Conflicts, c.kind, c.path)
			}
		})
	}
}

// The packet of a conflict has the stages, and the lines of all three sides.
func TestConflictPacket(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"src/auth.ts": text(tenLines)})
	ours := r.commit(files{"src/auth.ts": text(strings.Replace(tenLines, "5\n", "five\n", 1))}, base)
	theirs := r.commit(files{"src/auth.ts": text(strings.Replace(tenLines, "5\n", "V\n", 1))}, base)
	refusal := r.refused(r.boundary(), turn(43, ours, theirs))
	if len(refusal.Conflicts) != 1 {
		t.Fatalf("got %+v, want one conflict", refusal)
	}
	got := refusal.Conflicts[0]
	stage := func(commit string) Stage { return Stage{"100644", r.run("rev-parse", commit+":src/auth.ts")} }
	want := Conflict{
		Path: "src/auth.ts", Kind: KindContent, Base: stage(base), Ours: stage(ours), Theirs: stage(theirs),
		Hunks: "@@ line 2 @@\n2\n3\n4\n<<<<<<< target before landing 43\nfive\n||||||| base\n5\n=======\nV\n" +
			">>>>>>> submission q_43\n6\n7\n8\n",
		Note: "CONFLICT (content): Merge conflict in src/auth.ts",
	}
	if got != want {
		t.Errorf("the conflict is %+v\nwant %+v", got, want)
	}
	if text := refusal.Error(); !strings.Contains(text, `"src/auth.ts"`) || !strings.Contains(text, "submit again") {
		t.Errorf("the refusal reads %q", text)
	}
}

// Hunks are bounded for each path and for all of them.
func TestConflictLimits(t *testing.T) {
	r := newRig(t)
	base, ours, theirs := files{}, files{}, files{}
	for _, name := range strings.Split("abcdefghij", "") {
		base[name] = text(name + "\n")
		ours[name], theirs[name] = text(strings.Repeat("ours ä\n", 500)), text(strings.Repeat("theirs\n", 500))
	}
	b := r.commit(base)
	refusal := r.refused(r.boundary(), turn(1, r.commit(ours, b), r.commit(theirs, b)))
	if len(refusal.Conflicts) != 10 {
		t.Fatalf("%d conflicts, want 10", len(refusal.Conflicts))
	}
	all := 0
	for _, c := range refusal.Conflicts {
		if len(c.Hunks) > 4<<10 || !c.Cut {
			t.Errorf("%s: %d bytes of hunks, cut %v, want at most 4 KiB, cut", c.Path, len(c.Hunks), c.Cut)
		}
		all += len(c.Hunks)
	}
	if all > 16<<10 || all < 15<<10 {
		t.Errorf("%d bytes of hunks, want nearly 16 KiB", all)
	}
}

func TestRegions(t *testing.T) {
	lines := func(from, to string) string { return from + "\n" + to + "\n" }
	conflict := "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n"
	for _, c := range []struct{ name, text, want string }{
		{"none", "1\n2\n", ""},
		{"alone", conflict, "@@ line 1 @@\n" + conflict},
		{"without last newline", strings.TrimSuffix(conflict, "\n"), "@@ line 1 @@\n" + strings.TrimSuffix(conflict, "\n")},
		{"next to each other", conflict + conflict, "@@ line 1 @@\n" + conflict + conflict},
		{"near", conflict + lines("x", "y") + conflict, "@@ line 1 @@\n" + conflict + lines("x", "y") + conflict},
		{
			"far", "1\n2\n" + conflict + "a\nb\nc\nd\ne\nf\ng\n" + conflict,
			"@@ line 1 @@\n1\n2\n" + conflict + "a\nb\nc\n@@ line 12 @@\ne\nf\ng\n" + conflict,
		},
		{"not closed", "1\n<<<<<<< a\n1\n", "@@ line 1 @@\n1\n<<<<<<< a\n1\n"},
	} {
		if got, _ := regions(c.text, "<<<<<<< a", ">>>>>>> b", 1000); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What can never land, and what the caller got wrong.
func TestRefusalsAndMistakes(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text("a\n")})
	head := r.commit(files{"b": text("b\n")}, base)
	other := r.commit(files{"a": text("other\n")})
	merged := r.commit(files{"c": text("c\n")}, base, head)
	same := r.commit(files{"b": text("b\n")}, base)
	b := r.boundary()
	for _, c := range []struct {
		name         string
		parent, head string
		want         Reason
	}{
		{"contained", merged, head, ReasonEmpty},
		{"the parent itself", base, base, ReasonEmpty},
		{"the same change", same, head, ReasonEmpty},
		{"no common history", base, other, ReasonBase},
	} {
		if refusal := r.refused(b, turn(1, c.parent, c.head)); refusal.Reason != c.want {
			t.Errorf("%s: %v, want %s", c.name, refusal, c.want)
		}
	}
	_, err := b.Land(t.Context(), turn(1, base, strings.Repeat("1", 40)))
	if missing, ok := errors.AsType[*Missing](err); !ok || missing.Object != strings.Repeat("1", 40) {
		t.Errorf("a head that is nowhere: %v, want a Missing", err)
	}
	if _, err := b.Land(t.Context(), turn(1, base, r.run("rev-parse", head+"^{tree}"))); err == nil {
		t.Error("a tree landed as head")
	}
	for name, spoil := range map[string]func(*Turn){
		"no sequence":    func(t *Turn) { t.Sequence = 0 },
		"style":          func(t *Turn) { t.Style = "rebase" },
		"id":             func(t *Turn) { t.ID = "--upload-pack=x" },
		"id with a line": func(t *Turn) { t.ID = "q\nInterlock-Landing: 9" },
		"head is a name": func(t *Turn) { t.Head = "HEAD" },
		"no parent":      func(t *Turn) { t.Parent = "" },
		"option":         func(t *Turn) { t.Head = "--all" },
		"message":        func(t *Turn) { t.Message = "a\x00b" },
		"bytes":          func(t *Turn) { t.Message = "\xff" },
		"long message":   func(t *Turn) { t.Message = strings.Repeat("a", maxMessage+1) },
		"time":           func(t *Turn) { t.Staged = -1 },
	} {
		spoiled := turn(1, base, head)
		spoil(&spoiled)
		l, err := b.Land(t.Context(), spoiled)
		if _, refused := errors.AsType[*Refusal](err); err == nil || refused {
			t.Errorf("%s: %+v, %v, want an error that is no refusal", name, l, err)
		}
	}
}

// A submission changes at most so many paths, and none that git would not check out.
func TestPathLimits(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text("a\n")})
	many := files{}
	for i := range MaxPaths {
		many[fmt.Sprintf("d/%d", i)] = text("x\n")
	}
	b := r.boundary()
	l := r.land(b, turn(1, base, r.commit(many, base)))
	if len(l.Paths) != MaxPaths {
		t.Errorf("%d paths landed, want %d", len(l.Paths), MaxPaths)
	}
	many["one more"] = text("x\n")
	if refusal := r.refused(b, turn(1, base, r.commit(many, base))); refusal.Reason != ReasonLimit {
		t.Errorf("one path more: %v, want %s", refusal, ReasonLimit)
	}
}

func TestUnsafePaths(t *testing.T) {
	for _, path := range []string{
		"", "..", "../x", "a/../b", "./a", "a//b", "/a", "a/", ".git", ".git/config", "a/.GIT/config", ".git ", ".git.",
		".git. .", "git~1", ".g\u200cit", ".git::$INDEX_ALLOCATION",
	} {
		if !unsafePath(path) {
			t.Errorf("%q is accepted", path)
		}
	}
	for _, path := range []string{
		"a", ".github/x", ".gitignore", ".gitattributes", "a..b", "..a", "--x", "a\nb", "git~2", "a b", "ä", ".gitmodules",
		"...",
		" ",
	} {
		if unsafePath(path) {
			t.Errorf("%q is refused", path)
		}
	}
}

// A tree with a path that leads out of the work tree does not land.
func TestHostileTree(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text("a\n")})
	blob, err := r.git.Feed(t.Context(), []byte("x\n"), "hash-object", "-w", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	a := r.run("rev-parse", base+":a")
	for _, name := range []string{"..", ".git", ".GIT", "git~1"} {
		sub, err := r.git.Feed(t.Context(), []byte("100644 blob "+blob+"\tattributes\n"), "mktree")
		if err != nil {
			t.Fatal(err)
		}
		tree, err := r.git.Feed(t.Context(), []byte("100644 blob "+a+"\ta\n040000 tree "+sub+"\t"+name+"\n"), "mktree")
		if err != nil {
			t.Fatal(err)
		}
		head := r.run("commit-tree", "-m", "hostile", "-p", base, tree)
		refusal := r.refused(r.boundary(), turn(1, base, head))
		if want := []string{name + "/attributes"}; refusal.Reason != ReasonPath || !slices.Equal(refusal.Paths, want) {
			t.Errorf("%q: %+v, want %s with %q", name, refusal, ReasonPath, want)
		}
	}
}

// A boundary may be used by several goroutines at once, and several boundaries on one repository.
func TestConcurrentLandings(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{"a": text("a\n")})
	var turns []Turn
	var want []string
	first := r.boundary()
	for i := range 8 {
		next := turn(i+1, base, r.commit(files{fmt.Sprint(i): text("x\n")}, base))
		turns, want = append(turns, next), append(want, r.land(first, next).Commit)
	}
	second := r.boundary()
	got := make([][2]string, len(turns))
	var all sync.WaitGroup
	for i, next := range turns {
		for k, b := range []*Boundary{first, second} {
			all.Go(func() {
				l, err := b.Land(t.Context(), next)
				if err != nil {
					t.Error(err)
				}
				got[i][k] = l.Commit
			})
		}
	}
	all.Wait()
	for i := range turns {
		if got[i] != [2]string{want[i], want[i]} {
			t.Errorf("landing %d: %s, want %s", i+1, got[i], want[i])
		}
	}
}

// A file that one side adds to a folder that the other side renames is a conflict, whichever side it is, as git merge
// has it by default.
func TestRenamedFolder(t *testing.T) {
	r := newRig(t)
	b := r.boundary()
	long := func(n int) file { return text(strings.Repeat(fmt.Sprintf("line of %d\n", n), 20)) }
	base := r.commit(files{"old/a": long(1), "old/b": long(2), "old/c": long(3)})
	renames := files{"new/a": long(1), "new/b": long(2), "new/c": long(3), "old/a": {}, "old/b": {}, "old/c": {}}
	renamed := r.commit(renames, base)
	added := r.commit(files{"old/d": text("d\n")}, base)
	for name, sides := range map[string][2]string{"added": {renamed, added}, "renamed": {added, renamed}} {
		no := r.refused(b, turn(1, sides[0], sides[1]))
		if no.Reason != ReasonConflict || len(no.Conflicts) != 1 || no.Conflicts[0].Kind != KindDirectoryRename ||
			no.Conflicts[0].Path != "new/d" || !strings.Contains(no.Conflicts[0].Note, "old/d") {
			t.Errorf("%s: %+v", name, no)
		}
	}
	// The author moves it, or leaves it, on the target's commit: both land.
	for name, changes := range map[string]files{"moved": {"new/d": text("d\n"), "old/d": {}}, "left": {}} {
		all := maps.Clone(renames)
		maps.Copy(all, changes)
		merged := r.commit(all, added, renamed)
		if _, err := b.Land(t.Context(), turn(1, renamed, merged)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
