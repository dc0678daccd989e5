package merge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/git"
)

// world makes the same landings in a repository of its own, and returns the ids of their commits.
func world(t *testing.T, prepare func(r *rig)) (ids []string) {
	t.Helper()
	r := newRig(t)
	if prepare != nil {
		prepare(r)
	}
	base := r.commit(files{
		".gitattributes": text("CHANGES merge=union\n*.lock -merge\n"), "CHANGES": text("1\n"), "a": text(tenLines),
		"old": text(strings.Repeat("text\n", 20)), "\u00e4": text("x\n"),
	})
	heads := []string{
		r.commit(files{"CHANGES": text("1\ntwo\n"), "a": text("one\n" + tenLines[2:])}, base),
		r.commit(files{"CHANGES": text("1\nthree\n"), "old": {}, "new": text(strings.Repeat("text\n", 20))}, base),
		r.commit(files{"old": text("begin\n" + strings.Repeat("text\n", 20)), "\u00e4": text("y\n")}, base),
	}
	b := r.boundary()
	parent := base
	for i, head := range heads {
		next := turn(i+1, parent, head)
		if i == 1 {
			next.Style = StyleSquash
		}
		l := r.land(b, next)
		ids = append(ids, l.Commit)
		parent = l.Commit
	}
	if got := r.list(parent)["CHANGES"]; got != "100644 1\ntwo\nthree" {
		t.Errorf("CHANGES is %q: the attributes of the tree were not used", got)
	}
	return ids
}

// Locale, time zone, home folder, the caller's variables, and the repository's own configuration, attributes and
// grafts change no commit id.
func TestProfileMatrix(t *testing.T) {
	want := world(t, nil)
	hostile := "[merge]\n\trenames = false\n\tconflictStyle = zdiff3\n\tdefault = union\n\trenormalize = true\n" +
		"[merge \"text\"]\n\tdriver = false\n[merge \"union\"]\n\tdriver = false\n[diff]\n\talgorithm = minimal\n" +
		"\trenames = copies\n[core]\n\tattributesFile = ATTRIBUTES\n\tautocrlf = true\n\tprecomposeUnicode = true\n" +
		"\tbigFileThreshold = 1\n[i18n]\n\tcommitEncoding = latin1\n[user]\n\tname = mallory\n\temail = m@example.org\n" +
		"[commit]\n\tgpgSign = true\n[author]\n\tname = mallory\n"
	attributes := "* merge=binary -text diff=none\n"
	write := func(t *testing.T, name, text string) string {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	matrix := map[string]func(t *testing.T) (prepare func(*rig)){
		"locale": func(t *testing.T) func(*rig) {
			t.Setenv("LC_ALL", "tr_TR.UTF-8")
			t.Setenv("LANG", "tr_TR.UTF-8")
			t.Setenv("LANGUAGE", "tr")
			return nil
		},
		"time zone": func(t *testing.T) func(*rig) {
			t.Setenv("TZ", "Pacific/Chatham")
			return nil
		},
		"hostile home": func(t *testing.T) func(*rig) {
			home := t.TempDir()
			list := write(t, filepath.Join(home, "attributes"), attributes)
			write(t, filepath.Join(home, ".gitconfig"), strings.Replace(hostile, "ATTRIBUTES", list, 1))
			write(t, filepath.Join(home, "git", "config"), strings.Replace(hostile, "ATTRIBUTES", list, 1))
			write(t, filepath.Join(home, "git", "attributes"), attributes)
			t.Setenv("HOME", home)
			t.Setenv("XDG_CONFIG_HOME", home)
			return nil
		},
		"hostile variables": func(t *testing.T) func(*rig) {
			for name, value := range map[string]string{
				"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "GIT_ATTR_SOURCE": "HEAD",
				"GIT_CONFIG_PARAMETERS": "'merge.renames=false' 'merge.default=union'", "GIT_AUTHOR_NAME": "mallory",
				"GIT_AUTHOR_DATE": "1 +0100", "GIT_COMMITTER_DATE": "1 +0100", "GIT_MERGE_VERBOSITY": "5",
				"GIT_LITERAL_PATHSPECS": "0", "GIT_DEFAULT_HASH": "sha256", "GIT_CONFIG_SYSTEM": "/nowhere",
			} {
				t.Setenv(name, value)
			}
			return nil
		},
		"hostile repository": func(t *testing.T) func(*rig) {
			return func(r *rig) {
				config, err := os.ReadFile(filepath.Join(r.git.Dir, "config"))
				if err != nil {
					t.Fatal(err)
				}
				list := write(t, filepath.Join(r.git.Dir, "attributes"), attributes)
				write(t, filepath.Join(r.git.Dir, "config"), string(config)+strings.Replace(hostile, "ATTRIBUTES", list, 1))
				write(t, filepath.Join(r.git.Dir, "info", "attributes"), attributes)
				for _, hook := range []string{"reference-transaction", "post-checkout", "pre-merge-commit"} {
					write(t, filepath.Join(r.git.Dir, "hooks", hook), "#!/bin/sh\nexit 1\n")
					if err := os.Chmod(filepath.Join(r.git.Dir, "hooks", hook), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
		"work tree": func(t *testing.T) func(*rig) {
			return func(r *rig) {
				dir := filepath.Join(t.TempDir(), "web")
				if _, err := new(git.Repository).Output(t.Context(), "init", "--quiet", dir); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, ".gitattributes"), attributes)
				r.git = git.Repository{Dir: filepath.Join(dir, ".git"), WorkTree: dir}
			}
		},
		"a path with a colon and spaces": func(t *testing.T) func(*rig) {
			return func(r *rig) {
				dir := filepath.Join(t.TempDir(), `w e:b "x"`)
				if _, err := new(git.Repository).Output(t.Context(), "init", "--quiet", "--bare", dir); err != nil {
					t.Fatal(err)
				}
				r.git = git.Repository{Dir: dir}
			}
		},
	}
	for name, prepare := range matrix {
		t.Run(name, func(t *testing.T) {
			if got := world(t, prepare(t)); !slices.Equal(got, want) {
				t.Errorf("the landings are %q, want %q", got, want)
			}
		})
	}
}

// A repository with SHA-256 works the same, with ids of its own.
func TestSHA256(t *testing.T) {
	r := newRig(t, "--object-format=sha256")
	base := r.commit(files{"a": text("a\n")})
	head, parent := r.commit(files{"b": text("b\n")}, base), r.commit(files{"c": text("c\n")}, base)
	l := r.land(r.boundary(), turn(1, parent, head))
	if len(l.Commit) != 64 || len(r.list(l.Tree)) != 3 {
		t.Errorf("landed %+v", l)
	}
}

// Attributes come from the tree of the landing before, also those in folders, and a change of them counts from the
// next landing on.
func TestAttributesOfTheTree(t *testing.T) {
	r := newRig(t)
	both := files{"LOG": text("1\n"), "d/LOG": text("1\n"), "d/e/LOG": text("1\n")}
	base := r.commit(both)
	added := func(line string) files {
		changed := files{}
		for path := range both {
			changed[path] = text("1\n" + line + "\n")
		}
		return changed
	}
	ours := r.commit(added("ours"), base)
	theirs := r.commit(added("theirs"), base)
	for name, c := range map[string]struct {
		attributes files
		conflicts  []string
	}{
		"none":     {files{"x": text("x\n")}, []string{"LOG", "d/LOG", "d/e/LOG"}},
		"root":     {files{".gitattributes": text("LOG merge=union\n")}, nil},
		"folder":   {files{"d/.gitattributes": text("LOG merge=union\n")}, []string{"LOG"}},
		"one file": {files{".gitattributes": text("/LOG merge=union\n")}, []string{"d/LOG", "d/e/LOG"}},
		"nearest": {
			files{".gitattributes": text("LOG merge=union\n"), "d/e/.gitattributes": text("LOG merge\n")},
			[]string{"d/e/LOG"},
		},
		"macro": {files{".gitattributes": text("[attr]log merge=union\nLOG log\n")}, nil},
		"link": {
			files{".gitattributes": {"120000", "d/rules"}, "d/rules": text("LOG merge=union\n")},
			[]string{"LOG", "d/LOG", "d/e/LOG"},
		},
		"unknown":       {files{".gitattributes": text("LOG merge=mallory\n")}, []string{"LOG", "d/LOG", "d/e/LOG"}},
		"other ending":  {files{"d/x.gitattributes": text("LOG merge=union\n")}, []string{"LOG", "d/LOG", "d/e/LOG"}},
		"in the middle": {files{".gitattributes/LOG": text("LOG merge=union\n")}, []string{"LOG", "d/LOG", "d/e/LOG"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := r.boundary()
			parent := r.commit(c.attributes, ours)
			if c.conflicts == nil {
				r.land(b, turn(1, parent, theirs))
			} else if got := r.refused(b, turn(1, parent, theirs)).Paths; !slices.Equal(got, c.conflicts) {
				t.Errorf("conflicts in %q, want %q", got, c.conflicts)
			}
			// The same attributes come with a landing.
			l := r.land(b, turn(1, ours, r.commit(c.attributes, base)))
			if c.conflicts == nil {
				r.land(b, turn(2, l.Commit, theirs))
			} else if got := r.refused(b, turn(2, l.Commit, theirs)).Paths; !slices.Equal(got, c.conflicts) {
				t.Errorf("after a landing: conflicts in %q, want %q", got, c.conflicts)
			}
		})
	}
	// A submission does not choose the attributes that it is merged with.
	changed := added("theirs")
	changed[".gitattributes"] = text("LOG merge=union\n")
	if got := len(r.refused(r.boundary(), turn(1, ours, r.commit(changed, base))).Paths); got != 3 {
		t.Errorf("a submission with its own attributes: %d conflicts, want 3", got)
	}
	// The profile's attributes are stronger than those of the tree.
	b := r.open("LOG merge=union\n", false)
	r.land(b, turn(1, r.commit(files{".gitattributes": text("LOG -merge\n")}, ours), theirs))
	if b.digest == r.boundary().digest {
		t.Error("the attributes of the profile are not in its digest")
	}
}

// A driver is part of the profile, with the digest of its program.
func TestDriver(t *testing.T) {
	r := newRig(t)
	base := r.commit(files{".gitattributes": text("*.json merge=theirs\n"), "a.json": text("0\n")})
	ours, theirs := r.commit(files{"a.json": text("1\n")}, base), r.commit(files{"a.json": text("2\n")}, base)
	if refusal := r.refused(r.boundary(), turn(1, ours, theirs)); refusal.Reason != ReasonConflict {
		t.Errorf("without the driver: %v, want a conflict", refusal)
	}
	program := filepath.Join(t.TempDir(), "it's a driver")
	script := func(text string) {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("cp \"$2\" \"$1\"\n")
	driver := Driver{Name: "theirs", Program: program, Arguments: "%A %B"}
	b := r.boundary(driver)
	l := r.land(b, turn(1, ours, theirs))
	if got := r.list(l.Tree)["a.json"]; got != "100644 2" {
		t.Errorf("the driver made %q, want that of the submission", got)
	}
	moved := driver
	moved.Program = filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(filepath.Dir(moved.Program), os.DirFS(filepath.Dir(program))); err != nil {
		t.Fatal(err)
	}
	moved.Program = filepath.Join(filepath.Dir(moved.Program), filepath.Base(program))
	if got := r.boundary(moved).digest; got != b.digest {
		t.Errorf("the same program in another folder: %s, want %s", got, b.digest)
	}
	script("exit 1\n")
	if refusal := r.refused(r.boundary(driver), turn(1, ours, theirs)); refusal.Reason != ReasonConflict {
		t.Errorf("a driver that finds a conflict: %v", refusal)
	}
	if _, err := Open(t.Context(), Config{Repository: r.git.Dir, Profile: b.Profile()}); err == nil {
		t.Error("a boundary opened with another program than its profile has")
	}
	for _, bad := range []Driver{
		{Name: "union", Program: program}, {Name: "a b", Program: program}, {Name: "x", Program: "/nowhere/driver"},
	} {
		if p, err := NewProfile(t.Context(), "", bad); err == nil {
			t.Errorf("%+v makes the profile %+v", bad, p)
		}
	}
}

// A shallow repository lacks the history that decides what a merge is relative to.
func TestShallowRepository(t *testing.T) {
	r := newRig(t)
	head := r.commit(files{"b": text("b\n")}, r.commit(files{"a": text("a\n")}))
	r.run("update-ref", "refs/heads/main", head)
	dir := filepath.Join(t.TempDir(), "shallow.git")
	_, err := new(git.Repository).Output(t.Context(), "clone", "--quiet", "--bare", "--depth=1", "--branch=main",
		"file://"+r.git.Dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := NewProfile(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Config{Repository: dir, Profile: profile})
	if err == nil || !strings.Contains(err.Error(), "shallow") {
		t.Errorf("a shallow repository: %v, want a refusal", err)
	}
}

// Two profiles with one digest would be two functions with one name.
func TestDigestCoversTheProfile(t *testing.T) {
	seen := map[string]string{}
	for i, p := range []Profile{
		{},
		{Format: 1},
		{Git: "2.39.5"},
		{Configuration: []string{"a=b"}},
		{Configuration: []string{"a", "b"}},
		{Attributes: "a"},
		{Drivers: []Driver{{Name: "a"}}},
		{Drivers: []Driver{{Arguments: "a"}}},
		{Drivers: []Driver{{Digest: "a"}}},
	} {
		d := p.Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("profile %d has the digest of %s", i, other)
		}
		seen[d] = fmt.Sprint(i)
	}
}
