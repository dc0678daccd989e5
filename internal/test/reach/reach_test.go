package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The module of the cases: each file by its path.
var files = map[string]string{
	"go.mod": "module example.org/m\n\ngo 1.26\n",
	"limit/limit.go": `package limit

// Max is a limit.
const Max = 3

const (
	A = iota
	B
)

func Low() int { return 1 }

func High() int { return Max }
`,
	"limit/limit_test.go": "package limit\n\nimport \"testing\"\n\nfunc TestOwn(t *testing.T) {}\n",
	"shape/shape.go": `package shape

type Shape interface{ Area() int }

type Square struct{ side int }

func New() Square { return Square{1} }

func (s Square) Area() int { return s.side }

func (s Square) Unused() int { return 0 }

func Sum(s Shape) int { return s.Area() }
`,
	"shape/testdata/a.txt": "a\n",
	"use/use.go": `package use

import (
	"example.org/m/limit"
	"example.org/m/shape"
)

func Limit() int { return limit.High() }

func Area(s shape.Shape) int { return shape.Sum(s) }
`,
	"use/use_test.go": `package use_test

import (
	"os"
	"testing"

	"example.org/m/limit"
	"example.org/m/shape"
	"example.org/m/use"
)

func TestLimit(t *testing.T) { use.Limit() }

func TestB(t *testing.T) { _ = limit.B }

func TestLow(t *testing.T) { limit.Low() }

func TestShape(t *testing.T) { use.Area(shape.New()) }

func TestPage(t *testing.T) { os.ReadFile("../docs/page.md") }

func TestNothing(t *testing.T) {}
`,
	"apart/apart_test.go": `package apart

import (
	"testing"

	"example.org/m/limit"
)

func TestApart(t *testing.T) { limit.High() }
`,
	"tool/main.go": `package main

import "example.org/m/limit"

func main() { limit.Low() }
`,
	"starts/starts_test.go": `package starts

import (
	"os/exec"
	"testing"
)

func TestStarts(t *testing.T) { exec.Command("go", "build", "./tool").Run() }

func TestOther(t *testing.T) {}
`,
	"embedded/page.go": `package embedded

import _ "embed"

//go:embed page.html
var Page string

var Other string
`,
	"embedded/page.html": "<p>\n",
	"reader/reader_test.go": `package reader

import (
	"testing"

	"example.org/m/embedded"
)

func TestPage(t *testing.T) { _ = embedded.Page }

func TestOther(t *testing.T) { _ = embedded.Other }
`,
	"starting/starting.go": `package starting

import "example.org/m/limit"

var names = fill()

func fill() []int { return []int{limit.A} }

func Nothing() {}
`,
	"starting/starting_test.go": "package starting\n\nimport \"testing\"\n\nfunc TestStarting(t *testing.T) {}\n",
	"docs/page.md":              "page\n",
	"other/go.mod":              "module example.org/other\n\ngo 1.26\n",
	"other/other.go":            "package other\n\nimport \"example.org/m/limit\"\n\nvar X = limit.Max\n",
}

// repository writes the module, and commits it.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		write(t, root, name, text)
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "-A"},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "begin"},
	} {
		if _, err := git(root, args...); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// planOf returns the plan for the state of the module at root, as text.
func planOf(t *testing.T, root string) string {
	t.Helper()
	base, err := branchPoint(root)
	if err != nil {
		t.Fatal(err)
	}
	c, err := changed(root, base)
	if err != nil {
		t.Fatal(err)
	}
	p, err := choose(root, c, regexp.MustCompile("/apart$"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, one := range p.runs {
		line := one.dir + ": " + strings.Join(slices.Sorted(maps.Keys(one.tests)), " ")
		if one.own {
			line = one.dir + ": all"
		}
		lines = append(lines, line)
	}
	for _, dir := range p.apart {
		lines = append(lines, "apart: "+dir)
	}
	for _, dir := range p.modules {
		lines = append(lines, "module: "+dir)
	}
	for _, pkg := range slices.Sorted(maps.Keys(p.faults)) {
		lines = append(lines, "fault: "+pkg)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestReach(t *testing.T) {
	type edit = func(t *testing.T, root string)
	replace := func(name, old, text string) edit {
		return func(t *testing.T, root string) {
			if !strings.Contains(files[name], old) {
				t.Fatalf("%s has no %q", name, old)
			}
			write(t, root, name, strings.Replace(files[name], old, text, 1))
		}
	}
	remove := func(name string) edit {
		return func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		edits []edit
		want  string
	}{
		"nothing": {want: ""},
		"comment": {[]edit{replace("limit/limit.go", "is a limit", "is the limit")}, "limit: all"},
		"constant": {
			[]edit{replace("limit/limit.go", "Max = 3", "Max = 4")},
			"apart: apart\nlimit: all\nmodule: other\nuse: TestLimit",
		},
		// The initialisation of package starting runs a function that reads A; TestB reads B.
		"constant before": {
			[]edit{replace("limit/limit.go", "A = iota", "Z = iota\n\tA")},
			"limit: all\nmodule: other\nstarting: TestStarting\nuse: TestB",
		},
		"constant behind": {[]edit{replace("limit/limit.go", "B\n", "B\n\tC\n")}, "limit: all\nmodule: other"},
		"method behind an interface": {
			[]edit{replace("shape/shape.go", "return s.side", "return 2 * s.side")}, "use: TestShape",
		},
		"method without a call": {[]edit{replace("shape/shape.go", "return 0", "return 1")}, ""},
		"method more": {
			[]edit{replace("shape/shape.go", "func Sum", "func (s Square) String() string { return \"\" }\n\nfunc Sum")},
			"use: TestShape",
		},
		"command that a test builds": {
			[]edit{replace("limit/limit.go", "return 1", "return 0")},
			"limit: all\nmodule: other\nstarts: TestStarts\nuse: TestLow",
		},
		"testdata":      {[]edit{replace("shape/testdata/a.txt", "a", "b")}, ""},
		"embedded file": {[]edit{replace("embedded/page.html", "p", "b")}, "reader: TestPage"},
		"page":          {[]edit{replace("docs/page.md", "page", "side")}, "use: TestPage"},
		"untracked file": {
			[]edit{func(t *testing.T, root string) { write(t, root, "limit/new.go", "package limit\n") }}, "limit: all",
		},
		"untracked package": {
			[]edit{func(t *testing.T, root string) {
				write(t, root, "fresh/fresh_test.go", "package fresh\n\nimport \"testing\"\n\nfunc TestFresh(t *testing.T) {}\n")
			}}, "fresh: all",
		},
		"deleted file": {
			[]edit{remove("limit/limit.go")},
			"fault: example.org/m/apart\nfault: example.org/m/starting\nfault: example.org/m/tool\n" +
				"fault: example.org/m/use\nfault: example.org/m/use_test\nlimit: all\nmodule: other",
		},
		"deleted package": {[]edit{remove("shape")}, "fault: example.org/m/use\nfault: example.org/m/use_test"},
		"renamed package": {
			[]edit{
				remove("embedded"), func(t *testing.T, root string) {
					write(t, root, "moved/page.go", files["embedded/page.go"])
					write(t, root, "moved/page.html", files["embedded/page.html"])
				},
				replace("reader/reader_test.go", "m/embedded", "m/moved"),
			},
			"reader: all",
		},
		"signature": {
			[]edit{replace("limit/limit.go", "Low() int { return 1 }", "Low(x int) int { return x }")},
			"fault: example.org/m/tool\nfault: example.org/m/use_test\nlimit: all\nmodule: other\n" +
				"starts: TestStarts\nuse: TestLow",
		},
		"other module": {[]edit{replace("other/other.go", "X", "Y")}, "module: other"},
		"go.mod": {
			[]edit{replace("go.mod", "1.26", "1.26.0")},
			"apart: apart\nlimit: TestOwn\nmodule: other\nreader: TestOther TestPage\nstarting: TestStarting\n" +
				"starts: TestOther TestStarts\nuse: TestB TestLimit TestLow TestNothing TestPage TestShape",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := repository(t)
			for _, e := range c.edits {
				e(t, root)
			}
			got := planOf(t, root)
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Each register names tests that exist, and is one that the list of packages has.
func TestRegisters(t *testing.T) {
	for _, r := range registers {
		dir := filepath.Join("../../..", r.dir)
		names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(names) == 0 {
			t.Errorf("%s has no tests (%v)", r.dir, err)
			continue
		}
		var text bytes.Buffer
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(b)
		}
		for _, test := range r.tests {
			if !bytes.Contains(text.Bytes(), []byte("\nfunc "+test+"(t *testing.T)")) {
				t.Errorf("%s has no %s: correct registers.go", r.dir, test)
			}
		}
		for _, at := range r.when {
			if _, err := os.Stat(filepath.Join("../../..", at)); err != nil {
				t.Error(err)
			}
		}
	}
}

// changedLimit returns a module with a changed constant, and what runs the tests that can reach it until a deadline.
func changedLimit(t *testing.T, deadline time.Time) (p *plan, r *runner, out, log *bytes.Buffer) {
	root := repository(t)
	write(t, root, "limit/limit.go", strings.Replace(files["limit/limit.go"], "Max = 3", "Max = 4", 1))
	c, err := changed(root, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if p, err = choose(root, c, nil, nil); err != nil {
		t.Fatal(err)
	}
	out, log = new(bytes.Buffer), new(bytes.Buffer)
	return p, &runner{root: root, out: out, log: log, deadline: deadline}, out, log
}

// What does not begin in time is named, and what has changed is tested always.
func TestBudget(t *testing.T) {
	p, r, out, log := changedLimit(t, time.Now())
	if err := r.run(p); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"Test":"TestOwn"`) || strings.Contains(out.String(), `"Test":"TestLimit"`) {
		t.Errorf("the tests are\n%s", out)
	}
	if want := "tests of 2 packages, which make test runs:\n  apart\n  use\n"; !strings.Contains(log.String(), want) {
		t.Errorf("the log is\n%s\nwant in it\n%s", log, want)
	}
}

// Tests that took long are left out and named, unless their package has changed.
func TestLongTests(t *testing.T) {
	for _, whole := range []bool{false, true} {
		p, r, out, log := changedLimit(t, time.Now().Add(time.Hour))
		write(t, r.root, "dist/suites/unit.json", `{"tests": [{"package": "use", "test": "TestLimit", "seconds": 33.4},
			{"package": "limit", "test": "TestOwn", "seconds": 9}, {"package": "apart", "test": "TestApart", "seconds": 1}]}`)
		for _, one := range p.runs {
			one.whole = one.whole || whole
		}
		if err := r.run(p); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"TestOwn": true, "TestApart": true, "TestB": whole, "TestLimit": false} {
			if strings.Contains(out.String(), `"Test":"`+name+`"`) != want {
				t.Errorf("whole packages %t: %s runs, want %t:\n%s", whole, name, want, out)
			}
		}
		want := "1 tests of unchanged packages, which make test runs:\n  use TestLimit (33 s)\n"
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is\n%s\nwant in it\n%s", log, want)
		}
	}
}
