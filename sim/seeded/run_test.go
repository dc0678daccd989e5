package seeded

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// module writes a small module: a package, and a test of it that may pass.
func module(t *testing.T) *Runner {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.org/m\n\ngo 1.25\n")
	write(t, filepath.Join(dir, "shard", "add.go"), "package shard\n\nfunc add(a, b int) int {\n\treturn a + b\n}\n")
	write(t, filepath.Join(dir, "shard", "add_test.go"), `package shard

import "testing"

func TestAdd(t *testing.T) {
	if n := add(2, 3); n != 5 {
		t.Errorf("2 + 3 is %d", n)
	}
	for add(1, 1) == 3 {
	}
}
`)
	return &Runner{Root: dir, Limit: 5 * time.Second, Temp: t.TempDir()}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func addition(is string) *Bug {
	return &Bug{Name: "add", File: "shard/add.go", Was: "\treturn a + b\n", Is: is, Finders: []string{"shard"}}
}

// TestTry: a mistake is found, or missed, or cannot be tried out; and the tree stays as
// it is.
func TestTry(t *testing.T) {
	r := module(t)
	before, err := os.ReadFile(filepath.Join(r.Root, "shard", "add.go"))
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Try(t.Context(), addition("\treturn a - b\n")); !x.Found || x.Finder != "shard" ||
		!strings.Contains(x.Evidence, "2 + 3 is -1") || x.Error != "" {
		t.Errorf("a mistake that the test sees: %+v", x)
	}
	if x := r.Try(t.Context(), addition("\treturn b + a\n")); x.Found || x.Error != "" {
		t.Errorf("a mistake that changes nothing: %+v", x)
	}
	if x := r.Try(t.Context(), addition("\treturn a +* b\n")); x.Found || !strings.Contains(x.Error, "does not build") {
		t.Errorf("a mistake that does not compile: %+v", x)
	}
	if x := r.Try(
		t.Context(), &Bug{Name: "add", File: "shard/add.go", Was: "\treturn a * b\n", Finders: []string{"shard"}},
	); x.Found ||
		!strings.Contains(x.Error, "does not apply") {
		t.Errorf("a mistake that does not apply: %+v", x)
	}
	if after, err := os.ReadFile(filepath.Join(r.Root, "shard", "add.go")); err != nil || string(after) != string(before) {
		t.Errorf("the tree was changed: %q, %v", after, err)
	}
	if left, err := os.ReadDir(r.Temp); err != nil || len(left) > 0 {
		t.Errorf("this was left behind: %v, %v", left, err)
	}
}

// TestStillLooking: a finder that does not come to its end has found nothing.
func TestStillLooking(t *testing.T) {
	r := module(t)
	r.Limit = 200 * time.Millisecond
	if x := r.Try(t.Context(), addition("\tif a == 1 {\n\t\treturn 3\n\t}\n\treturn a + b\n")); x.Found || x.Error != "" {
		t.Errorf("%+v", x)
	}
}

// TestByLimit: a finder that exceeds its own limit has found nothing.
func TestByLimit(t *testing.T) {
	r := module(t)
	write(t, filepath.Join(r.Root, "shard", "add_test.go"), `package shard

import "testing"

func TestAdd(t *testing.T) {
	if add(1, 1) != 2 {
		panic("test timed out after 50s")
	}
}
`)
	x := r.Try(t.Context(), addition("\treturn a - b\n"))
	if x.Found || !x.ByLimit || x.Error != "" || !strings.Contains(x.Line(), "MISSED") {
		t.Errorf("%+v", x)
	}
	if x := r.Try(t.Context(), addition("\treturn b + a\n")); x.Found || x.ByLimit {
		t.Errorf("%+v", x)
	}
}

// TestFinderThatFailsByItself: what fails without a mistake finds none.
func TestFinderThatFailsByItself(t *testing.T) {
	r := module(t)
	if p := r.Clean(t.Context(), "shard"); !p.Passed || p.Error != "" {
		t.Errorf("%+v", p)
	}
	write(t, filepath.Join(r.Root, "shard", "add.go"), "package shard\n\nfunc add(a, b int) int { return 7 }\n")
	report := NewReport(r)
	report.Clean = append(report.Clean, r.Clean(t.Context(), "shard"))
	if p := report.Clean[0]; p.Passed || !strings.Contains(p.Error, "2 + 3 is 7") {
		t.Errorf("%+v", p)
	}
	if report.Good() {
		t.Error("the report is good, although a finder fails by itself")
	}
}

// TestSample tries a few of the mistakes out that are found within seconds. All of them are
// for "make seeded".
func TestSample(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the product six times")
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	sample := map[string]bool{
		"matrix-shared-writer": true, "answer-before-append": true, "stale-owner-renews": true,
		"body-not-checked": true, "torn-tail-kept": true, "snapshot-not-synced": true,
	}
	r := &Runner{Root: dir, Limit: 3 * time.Minute, Temp: t.TempDir()} // the slowest takes 30 s on a quiet machine
	for _, b := range all(t) {
		if !sample[b.Name] {
			continue
		}
		delete(sample, b.Name)
		if x := r.Try(t.Context(), &b); !x.Found {
			t.Error(x.Line())
		} else {
			t.Logf("%s\n%s", x.Line(), x.Evidence)
		}
	}
	for name := range sample {
		t.Errorf("there is no mistake %s", name)
	}
}

// TestGood: 95 of 100 are enough, 94 are not, and nothing may be left untried.
// A run that was ended goes on with what its record has, under the commit of its beginning.
func TestResume(t *testing.T) {
	bugs, err := Bugs()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.json")
	p := &Report{Commit: "first"}
	if err := p.Resume(path); err != nil || p.Commit != "first" {
		t.Fatalf("without a record: %v, %+v", err, p)
	}
	found, wrong, gone := bugs[0].Name, bugs[1].Name, "a mistake that is no more"
	p.Add(Result{Name: found, Found: true})
	p.Add(Result{Name: wrong, Error: "does not apply"})
	p.Add(Result{Name: gone, Found: true})
	p.AddPass(Pass{Finder: "worlds"})
	p.AddPass(Pass{Finder: "worlds", Passed: true})
	if err := p.Write(path); err != nil {
		t.Fatal(err)
	}
	q := &Report{Commit: "second"}
	if err := q.Resume(path); err != nil {
		t.Fatal(err)
	}
	if q.Commit != "first" || q.Found != 1 || q.Total != 2 || !q.Has(found) || q.Has(wrong) || q.Has(gone) ||
		!q.Passed("worlds") || q.Passed("model") || len(q.Clean) != 1 {
		t.Errorf("after a pause: %+v", q)
	}
	q.Add(Result{Name: wrong, Found: true})
	if q.Found != 2 || q.Total != 2 || !q.Has(wrong) {
		t.Errorf("after another try: %+v", q)
	}
	write(t, path, "{")
	if err := q.Resume(path); err == nil {
		t.Error("a record that is cut off passes for one")
	}
}

func TestGood(t *testing.T) {
	p := &Report{}
	for i := range 100 {
		p.Add(Result{Name: strconv.Itoa(i), Found: i >= 5})
	}
	if !p.Good() {
		t.Errorf("%d of %d are not enough", p.Found, p.Total)
	}
	p.Results[99].Error = "it does not compile"
	if p.Good() {
		t.Error("a mistake that could not be tried out counts as good")
	}
	p.Results[99].Error = ""
	if p.Found--; p.Good() {
		t.Errorf("%d of %d are enough", p.Found, p.Total)
	}
}
