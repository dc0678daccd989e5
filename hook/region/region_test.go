package region

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const goFile = `package web

import "fmt"

// Login lets a user in.
func Login(name string) error {
	return fmt.Errorf("no %s", name)
}

func (s *Server[T]) Login() {
	s.open = true
}

var a, b = 1, 2

func init() { a = 3 }

func init() { b = 4 }
`

const pyFile = `import os

def login(user):
    print("in")
    return user

@cached
def logout(user):
    print("out")
    return user

class Shop:
    def login(self):
        return 1
`

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		file, text, old, new, want string
	}{
		{"web.go", goFile, `"no %s"`, `"no user %s"`, "func Login"},
		{"web.go", goFile, "lets a user in", "admits a user", "func Login"},
		{"web.go", goFile, "Login(name string) error {\n\treturn", "Login(id string) error {\n\treturn", "func Login"},
		{"web.go", goFile, "s.open = true", "s.open = false", "func Server.Login"},
		{"web.go", goFile, "1, 2", "2, 1", "var a b"},
		{"web.go", goFile, "a = 3", "a = 5", ""}, // two functions have this name
		{"web.go", goFile, "func Login(", "func SignIn(", ""},
		{"web.go", goFile, "s.open = true\n}", "s.open = true\n}\n\nfunc more() {}", ""},
		{"web.go", goFile, "s.open = true", "s.open = {", ""}, // it is no Go any more
		{"web.go", goFile, "}\n\nvar a, b", "}\n\nvar a, b", ""},
		{"web.go", goFile, "package web", "package shop", ""},
		{"web.go", goFile, `"fmt"`, `"errors"`, ""},
		{"web.go", goFile, "init", "start", ""}, // it is there twice
		{"web.go", goFile, "absent", "present", ""},
		{"web.go", goFile, "", "x", ""},
		{"web.go", "package web\nfunc {", "web", "shop", ""},
		{"shop.py", pyFile, `print("in")`, `print("In")`, "def login(user)"},
		{"shop.py", pyFile, `print("out")`, `print("Out")`, "def logout(user)"},
		{"shop.py", pyFile, "return 1", "return 2", "class Shop"},
		{"shop.py", pyFile, "import os\n", "import os\nimport sys\n", ""},
		{"shop.py", pyFile, "return user", "return 2", ""}, // it is there twice
		{"shop.py", pyFile, "def login(user):\n    print", "def login(user):\n    log", "def login(user)"},
		{"shop.py", pyFile, "@cached\ndef logout", "@cached\ndef logout", ""},
		{"notes.md", "a\n\nb\n", "b", "c", ""},
		{"SHOP.PY", pyFile, "return 1", "return 2", "class Shop"},
		{"shop.py", "x = \"\xff\"\n", "x", "y", ""},
		{"shop.py", strings.Repeat("#", MaxFile) + "\nx = 1\n", "1", "2", ""},
	} {
		got, ok := (&Edit{tt.old, tt.new}).Of(tt.file, []byte(tt.text))
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q to %q changes %q (%t), want %q", tt.file, tt.old, tt.new, got, ok, tt.want)
		}
	}
}

// TestIndependent applies two edits of two regions in both orders: the second one finds its text and its region as
// before, and both are kept.
func TestIndependent(t *testing.T) {
	for seed := range uint64(3_000) {
		r := rand.New(rand.NewPCG(seed, 8))
		file, text := source(r)
		a, b := random(r, text), random(r, text)
		in, ok := a.Of(file, []byte(text))
		other, also := b.Of(file, []byte(text))
		if !ok || !also || in == other {
			continue
		}
		first := strings.Replace(text, a.Old, a.New, 1)
		if got, ok := b.Of(file, []byte(first)); strings.Count(first, b.Old) == 1 && (!ok || got != other) {
			t.Fatalf("seed %d: %q has the region %q after another edit, not %q\n%s", seed, b.Old, got, other, first)
		}
		second := strings.Replace(text, b.Old, b.New, 1)
		if strings.Count(first, b.Old) == 1 && strings.Count(second, a.Old) == 1 &&
			strings.Replace(first, b.Old, b.New, 1) != strings.Replace(second, a.Old, a.New, 1) {
			t.Fatalf("seed %d: the order of %+v and %+v matters\n%s", seed, a, b, text)
		}
	}
}

// TestName compares the names of lines' regions with a plain search, and counts how many random edits have one.
func TestName(t *testing.T) {
	found := 0
	for seed := range uint64(2_000) {
		r := rand.New(rand.NewPCG(seed, 9))
		file, text := source(r)
		e := random(r, text)
		name, ok := e.Of(file, []byte(text))
		if !ok {
			continue
		}
		found++
		if strings.HasSuffix(file, ".go") {
			continue
		}
		want, start := "", 0
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "def ") && start <= strings.Index(text, e.Old) {
				want = strings.TrimSuffix(strings.TrimSpace(line), "():") + "()"
			}
			start += len(line)
		}
		if name != want {
			t.Fatalf("seed %d: %q is in %q, not in %q\n%s", seed, e.Old, name, want, text)
		}
	}
	if found < 300 {
		t.Errorf("%d of 2,000 edits have a region", found)
	}
}

// source returns a random file of a few functions.
func source(r *rand.Rand) (file, text string) {
	var b strings.Builder
	isGo := r.IntN(2) == 0
	if isGo {
		b.WriteString("package web\n\n")
	}
	for i := range 2 + r.IntN(4) {
		name := fmt.Sprintf("f%d", i)
		if r.IntN(8) == 0 {
			name = "f0"
		}
		if isGo {
			fmt.Fprintf(&b, "// %s is one.\nfunc %s() int {\n", name, name)
		} else {
			fmt.Fprintf(&b, "def %s():\n", name)
		}
		for range r.IntN(4) {
			fmt.Fprintf(&b, "\tx%d(%d)\n", r.IntN(5), r.IntN(5))
		}
		if isGo {
			fmt.Fprintf(&b, "\treturn %d\n}\n\n", i)
		} else {
			fmt.Fprintf(&b, "\treturn %d\n\n", i)
		}
	}
	return map[bool]string{true: "a.go", false: "a.py"}[isGo], b.String()
}

// random returns an edit of a random piece of a text.
func random(r *rand.Rand, text string) *Edit {
	from := r.IntN(len(text))
	to := min(from+1+r.IntN(25), len(text))
	fresh := []string{"", "y", "x1(9)\n\tx2(8)", "\n", "}\n\nfunc g() {\n", "def g():\n", "\tx3(7)\n"}
	old := text[from:to]
	if r.IntN(2) == 0 {
		return &Edit{old, old + fresh[r.IntN(len(fresh))]}
	}
	return &Edit{old, fresh[r.IntN(len(fresh))]}
}
