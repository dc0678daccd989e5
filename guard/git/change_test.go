package git

import (
	"strings"
	"testing"
)

// Which paths a push changes, as its pusher would say it, whatever happens to refs.
func TestChanged(t *testing.T) {
	r := newRig(t)
	root := r.commit("base", "1", "kept", "1")
	r.pushes("main")
	r.hold("other", "exclusive", "repo:web/held")

	// A branch begins where another stands, or with changes of its own.
	r.pushes("main:refs/heads/same")
	r.git(r.work, "checkout", "-q", "-b", "topic")
	topic := r.commit("own", "1")
	r.pushes("topic")
	r.git(r.work, "checkout", "-q", "-b", "bad", "main")
	r.commit("held", "1")
	r.refused("1 of 1 changed paths", "bad")
	r.refused("held: held by other", "HEAD:refs/heads/a", "HEAD:refs/heads/b")

	// Of a branch that merged another, only its own changes count.
	r.git(r.work, "checkout", "-q", "main")
	r.commit("from-main", "1")
	r.pushes("main")
	check := func(want string, updates ...update) {
		t.Helper()
		repo := repository{dir: r.work}
		paths, err := repo.changed(
			t.Context(), updates, func(ref string) bool { return strings.HasPrefix(ref, "refs/remotes/") }, 100,
		)
		if got := strings.Join(paths, " "); err != nil || got != want {
			t.Errorf("changed %q (%v), want %q", got, err, want)
		}
	}
	none := strings.Repeat("0", 40)
	main := r.git(r.work, "rev-parse", "main")
	r.git(r.work, "fetch", "-q")
	r.git(r.work, "checkout", "-q", "-b", "merged", root)
	r.commit("late", "1")
	r.git(r.work, "merge", "-q", "--no-edit", "main")
	merged := r.git(r.work, "rev-parse", "HEAD")
	check("late", update{none, merged, "refs/remotes/origin/merged"})
	check("from-main", update{root, main, "refs/remotes/origin/x"})
	check("from-main own", update{topic, main, "refs/remotes/origin/topic"}) // forced
	check("", update{none, main, "refs/remotes/origin/again"})
	check("", update{none, merged, "refs/heads/not-guarded"})
	check("", update{none, none, "refs/remotes/origin/nothing"})

	// The commits that disappear with a branch: none when all of it is elsewhere too.
	check("own", update{topic, none, "refs/remotes/origin/topic"})
	check("", update{root, none, "refs/remotes/origin/same"})
	check("base from-main kept own", // nothing stays
		update{topic, none, "refs/remotes/origin/topic"}, update{root, none, "refs/remotes/origin/same"},
		update{main, none, "refs/remotes/origin/main"})

	// No history in common: all of it.
	r.git(r.work, "checkout", "-q", "--orphan", "orphan")
	orphan := r.commit("new", "1")
	check("base from-main kept late new", update{none, orphan, "refs/remotes/origin/orphan"})

	// Two best common ancestors: what differs from both.
	r.git(r.work, "checkout", "-q", "-b", "left", root)
	left := r.commit("left", "1")
	r.git(r.work, "checkout", "-q", "-b", "right", root)
	right := r.commit("right", "1")
	r.git(r.work, "merge", "-q", "--no-edit", "left")
	r.git(r.work, "update-ref", "refs/remotes/origin/one", r.commit("one", "1"))
	r.git(r.work, "checkout", "-q", "-b", "two", left)
	r.git(r.work, "merge", "-q", "--no-edit", right)
	check("two", update{none, r.commit("two", "1"), "refs/remotes/origin/two"})

	// A submodule is one path, a change of mode is a change.
	r.git(r.work, "checkout", "-q", "main")
	r.git(r.work, "update-index", "--add", "--cacheinfo", "160000,"+topic+",vendor/lib")
	r.git(r.work, "update-index", "--chmod=+x", "kept")
	r.git(r.work, "commit", "-q", "-m", "submodule")
	check("kept vendor/lib", update{main, r.git(r.work, "rev-parse", "HEAD"), "refs/remotes/origin/main"})

	// A push below refs/replace changes none of it.
	r.git(r.work, "replace", topic, root)
	check("own", update{none, topic, "refs/remotes/origin/again"}, update{topic, none, "refs/remotes/origin/topic"})
}

func TestReadUpdates(t *testing.T) {
	a, b := strings.Repeat("a", 40), strings.Repeat("b", 64)
	got, err := readUpdates(strings.NewReader(a + " " + a + " refs/heads/x\n" + b + " " + b + " refs/heads/y z\n"))
	if err != nil || len(got) != 2 || got[1].ref != "refs/heads/y z" {
		t.Error(got, err)
	}
	for _, bad := range []string{
		"\n", a + "\n", a + " " + a + "\n", a + " " + a + " \n", a + " HEAD refs/heads/x\n",
		"--output=x" + a[10:] + " " + a + " refs/heads/x\n", strings.ToUpper(a) + " " + a + " refs/heads/x\n",
		strings.Repeat(a+" "+a+" r\n", maxUpdates+1), a + " " + a + " " + strings.Repeat("r", 1<<20),
	} {
		if got, err := readUpdates(strings.NewReader(bad)); err == nil {
			t.Errorf("%.100q is taken as %d updates", bad, len(got))
		}
	}
}
