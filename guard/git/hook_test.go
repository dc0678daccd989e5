package git

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
)

func TestHeldByOthers(t *testing.T) {
	r := newRig(t)
	r.commit("src/auth.ts", "1", "src/deep/a.ts", "1", "doc/index.md", "1")
	r.pushes("main")
	held := r.hold("alice", "exclusive", "repo:web/src/auth.ts")

	// Her files are hers, files beside them are not.
	r.commit("doc/index.md", "2", "src/deep/a.ts", "2")
	r.pushes("main")
	before := r.git(r.bare, "rev-parse", "main")
	r.commit("src/auth.ts", "2")
	r.refused(`1 of 1 changed paths`, "main")
	r.refused(`src/auth.ts: held by alice (exclusive, for TIME): "refactor  [31mlogin"`, "main")
	r.refused(`look at the changes, and push with that lease`, "main")
	if r.git(r.bare, "rev-parse", "main") != before {
		t.Error("the ref moved")
	}

	// She may push it, a stranger's lease is of no use, and a late one refuses.
	other := r.hold("bob", "exclusive", "repo:web/doc")
	r.refused("held by alice", "-o", "interlock-lease="+other, "main")
	r.pushes("-o", "interlock-lease="+held, "main")
	r.release(held)
	r.commit("src/auth.ts", "3")
	r.refused("the lease of this push is not valid", "-o", "interlock-lease="+held, "main")
	r.refused("not the id of a lease", "-o", "interlock-lease=l_1", "main")
	r.refused("is not valid", "-o", "interlock-lease=l_00000000000000000000000000000000", "main")
	r.pushes("main")

	// A directory, in every mode that keeps writers out.
	r.commit("doc/index.md", "3")
	r.refused("doc/index.md: held by bob (exclusive, for TIME), who holds doc", "main")
	r.release(other)
	reader := r.hold("carol", "shared", "repo:web")
	r.refused("held by carol (shared, for TIME), who holds repo:web", "main")
	r.release(reader)
	intent := r.hold("dan", "intent-exclusive", "repo:web")
	r.pushes("main")
	r.release(intent)

	// A directory that becomes a file takes away what is below it.
	below := r.hold("erin", "exclusive", "repo:web/src/deep/a.ts")
	r.commit("src/deep/a.ts", "", "src/deep", "now a file")
	r.refused("src/deep: held by erin (exclusive, for TIME), who holds src/deep/a.ts", "main")
	r.refused("src/deep/a.ts: held by erin", "main")
	r.release(below)
	r.pushes("main")

	// Two leases at once, and a rename is two paths.
	one, two := r.hold("f", "exclusive", "repo:web/src/auth.ts"), r.hold("f", "exclusive", "repo:web/src/login.ts")
	r.git(r.work, "mv", "src/auth.ts", "src/login.ts")
	r.commit()
	r.refused("1 of 2 changed paths", "-o", "interlock-lease="+one, "main")
	r.pushes("-o", "interlock-lease="+one+","+two, "main")
}

func TestLeaseRequired(t *testing.T) {
	r := newRig(t)
	r.settings.Require = RequireLease
	r.commit("a/1", "1", "b/1", "1")
	r.refused("no lease of yours covers it", "main")
	r.refused("git push -o interlock-lease=l_...", "main")
	a := r.hold("ann", "exclusive", "repo:web/a")
	r.refused("1 of 2 changed paths", "-o", "interlock-lease="+a, "main")
	b := r.hold("ann", "exclusive", "repo:web/b/1")
	r.pushes("-o", "interlock-lease="+a, "-o", "interlock-lease="+b, "main")
	r.commit("a/1", "2")
	r.env = append(r.env, "INTERLOCK_LEASE="+a)
	r.pushes("main")
	r.release(a)
	shared := r.hold("ann", "shared", "repo:web/a")
	r.env = append(r.env, "INTERLOCK_LEASE="+shared)
	r.commit("a/1", "3")
	r.refused("no lease of yours covers it", "main")
}

// A lock in a user's own name and no session is the user's, without an id.
func TestUsersOwn(t *testing.T) {
	for _, require := range []Require{RequireNone, RequireLease} {
		r := newRig(t)
		r.settings.Require = require
		r.hold("alice", "exclusive", "repo:web/logo.png")
		r.commit("logo.png", "1")
		r.settings.User = "bob"
		r.refused("held by alice", "main")
		r.settings.User = "alice"
		r.pushes("main")

		// An agent's session is another party, whatever it calls itself.
		var opened struct{ Session struct{ ID string } }
		r.post("/v1/sessions", map[string]any{"agent": "alice"}, &opened)
		r.post(
			"/v1/leases",
			map[string]any{"session": opened.Session.ID, "claims": []map[string]string{{"key": "repo:web/icon.png"}}},
			&struct{}{},
		)
		r.commit("icon.png", "1")
		r.refused("icon.png: held by alice", "main")
	}
}

func TestOddPaths(t *testing.T) {
	for path, words := range map[string]string{
		"caf\xe9":                      `"caf\xe9" is not UTF-8`,
		"a\tb":                         "control character",
		"a\nb":                         "control character",
		" a":                           "begins or ends with a space",
		"a\u200bb":                     "invisible character",
		"cafe\u0301":                   "normalization form C",
		strings.Repeat("d/", 16) + "f": "segments",
		strings.Repeat("d", 250) + "/" + strings.Repeat("e", 250) + "/f.txt": "bytes",
	} {
		r := newRig(t)
		r.commit(path, "1", "ordinary", "1")
		r.refused("1 of 2 changed paths", "main")
		r.refused(words, "main")
		r.refused("Rename the paths that cannot be guarded", "main")
	}
}

func TestFailsClosed(t *testing.T) {
	r := newRig(t)
	r.commit("a", "1")
	r.settings.MaxPaths = 1
	r.pushes("main")
	r.commit("b", "1", "c", "1")
	r.refused("more than 1 paths", "main")
	r.settings.MaxPaths = 2
	r.interlock.Close()
	r.refused("no Interlock server answered", "main")
	// A push that changes no path needs no answer.
	r.pushes("main~1:refs/heads/same")
}

func TestShown(t *testing.T) {
	env := map[string]string{
		"GIT_PUSH_OPTION_COUNT": "4", "GIT_PUSH_OPTION_0": "ci.skip", "GIT_PUSH_OPTION_1": "interlock-lease=l_1, l_2",
		"GIT_PUSH_OPTION_2": "interlock-lease=", "GIT_PUSH_OPTION_3": "interlock-lease=l_3",
		"GIT_PUSH_OPTION_4": "interlock-lease=l_4",
		"INTERLOCK_LEASE":   "l_5",
	}
	got := strings.Join(Shown(func(name string) string { return env[name] }), " ")
	if got != "l_1 l_2 l_3 l_5" {
		t.Errorf("got %s", got)
	}
	env["GIT_PUSH_OPTION_1"] = "interlock-lease=" + strings.Repeat("l_1,", 1000)
	if got := len(Shown(func(name string) string { return env[name] })); got != maxLeases {
		t.Errorf("got %d", got)
	}
}

func TestKeys(t *testing.T) {
	keys, err := NewKeys("git:{name}/{path}#x", "team/web")
	if err != nil {
		t.Fatal(err)
	}
	if key := keys.Key("a/b"); key != "git:team/web/a/b#x" {
		t.Error(key)
	}
	if path, ok := keys.Path("git:team/web/a/b#x"); !ok || path != "a/b" {
		t.Error(path, ok)
	}
	for _, key := range []string{"git:team/web/a/b", "git:team/web2/a#x", "git:team/web/#x"} {
		if path, ok := keys.Path(interlock.Key(key)); ok {
			t.Errorf("%s gives %s", key, path)
		}
	}
	for _, bad := range [][2]string{
		{"repo:{name}", "web"}, {"{path}{path}", "web"}, {"{path}{other}", "web"}, {"{path}", ""}, {"{path}", "{path}"},
	} {
		if _, err := NewKeys(bad[0], bad[1]); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
