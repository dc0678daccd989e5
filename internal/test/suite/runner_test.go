package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/search"
)

// checkout writes a module with one package of tests, and returns a runner for it and the suite.
func checkout(t *testing.T, tests string) (*runner, *suite) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module " + module + "\n\ngo 1.26\n",
		"a_test.go": "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" +
			// once reports whether it is called for the first time in this checkout.
			"func once(name string) bool { return os.Mkdir(name, 0o777) == nil }\n\n" + tests,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	return &runner{root: root, record: filepath.Join(root, "dist/suites")}, &suite{
		name: "unit", long: true, jobs: func() ([]job, error) { return []job{{packages: []string{"."}}}, nil },
	}
}

func TestRepeat(t *testing.T) {
	const stable = "func TestStable(t *testing.T) {}\n\n"
	for name, tt := range map[string]struct {
		tests    string
		passed   bool
		last     string // line
		unstable []string
		search   bool
	}{
		"a test that fails once is unstable": {
			tests: stable + "func TestA(t *testing.T) { if once(`a`) { t.Error(`late`) } }", passed: true,
			last: "unit: 2 passed, 0 failed", unstable: []string{"TestA"},
		},
		"a subtest that fails once is unstable": {
			tests: stable + "func TestA(t *testing.T) {\n" +
				"\tt.Run(`x y`, func(t *testing.T) { if once(`a`) { t.Error(`late`) } })\n" +
				"\tt.Run(`z`, func(t *testing.T) {})\n}",
			passed: true, last: "unit: 3 passed, 0 failed", unstable: []string{"TestA/x_y"},
		},
		"a subtest is repeated with the subtests that it needs": {
			tests: stable + "var built bool\n\nfunc TestA(t *testing.T) {\n" +
				"\tt.Run(`build`, func(t *testing.T) { built = true })\n" +
				"\tt.Run(`use/it`, func(t *testing.T) { if once(`a`) || !built { t.Error(`late`) } })\n}",
			passed: true, last: "unit: 3 passed, 0 failed", unstable: []string{"TestA/use/it"},
		},
		"a failure of its own counts for a test with subtests": {
			tests: stable + "func TestA(t *testing.T) {\n\tt.Run(`x`, func(t *testing.T) {})\n\tt.Error(`wrong`)\n}\n\n" +
				"func TestB(t *testing.T) { if once(`b`) { t.Error(`late`) } }",
			last: "unit: 3 passed, 1 failed", unstable: []string{"TestB"},
		},
		"a repetition that runs no test shows nothing": {
			tests: "func TestA(t *testing.T) { if once(`a`) { t.Error(`late`) } else { t.Skip() } }\n\n" + stable,
			last:  "unit: 1 passed, 1 failed",
		},
		"a test that fails twice has failed": {
			tests: stable + "func TestA(t *testing.T) { if once(`a`) || once(`b`) { t.Error(`late`) } }",
			last:  "unit: 1 passed, 1 failed",
		},
		"a test that fails the third time has failed": {
			tests: stable + "func TestA(t *testing.T) { if once(`a`) || !once(`b`) { t.Error(`late`) } }",
			last:  "unit: 1 passed, 1 failed",
		},
		"a package that dies once is unstable as a whole": {
			tests: "func TestA(t *testing.T) { if once(`a`) { os.Exit(3) } }\n\n" + stable, passed: true,
			last: "unit: 2 passed, 0 failed", unstable: []string{""},
		},
		"two unstable tests are borne": {
			tests: "func TestA(t *testing.T) { if once(`a`) { t.Error(`late`) } }\n\n" +
				"func TestB(t *testing.T) { if once(`b`) { t.Error(`late`) } }\n",
			passed: true, last: "unit: 2 passed, 0 failed", unstable: []string{"TestA", "TestB"},
		},
		"three failures are not repeated": {
			tests: "func TestA(t *testing.T) { if once(`a`) { t.Error(`late`) } }\n\n" +
				"func TestB(t *testing.T) { if once(`b`) { t.Error(`late`) } }\n\n" +
				"func TestC(t *testing.T) { if once(`c`) { t.Error(`late`) } }\n",
			last: "unit: 0 passed, 3 failed",
		},
		"a report of the race detector is a proof": {
			tests: "func TestA(t *testing.T) { if once(`a`) { t.Error(`WARNING: DATA RACE`) } }\n\n" + stable,
			last:  "unit: 1 passed, 1 failed",
		},
		"a seed is a proof": {
			tests: "func TestA(t *testing.T) { if once(`a`) { t.Error(`seed 17: two holders`) } }\n\n" + stable,
			last:  "unit: 1 passed, 1 failed",
		},
		"a history that does not fit is a proof": {
			tests: "func TestA(t *testing.T) { if once(`a`) { t.Error(`the history is in x.jsonl`) } }\n\n" + stable,
			last:  "unit: 1 passed, 1 failed",
		},
		"what a search finds is a proof": {
			tests: "func TestA(t *testing.T) { if once(`a`) { t.Error(`late`) } }\n\n" + stable, search: true,
			last: "unit: 1 passed, 1 failed",
		},
		"what does not compile is a proof": {
			tests: "func TestA(t *testing.T) { undefined() }", last: "unit: 0 passed, 1 failed",
		},
		"a skipped test has shown nothing": {
			tests: "func TestA(t *testing.T) { t.Skip() }\n\n" + stable, last: "unit: 1 passed, 1 failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, s := checkout(t, tt.tests)
			s.search = tt.search
			var out strings.Builder
			got := n.run(context.Background(), s, &out)
			if got.passed != tt.passed || !strings.HasSuffix(out.String(), "\n"+tt.last+"\n") {
				t.Errorf("passed = %t, want %t with the last line %q:\n%s", got.passed, tt.passed, tt.last, &out)
			}
			var names []string
			for _, u := range got.record.Unstable {
				names = append(names, u.Test)
				if b, err := os.ReadFile(u.File); err != nil || !strings.Contains(string(b), "repeat it alone: ") {
					t.Errorf("the kept output is %q, %v", b, err)
				}
				if !strings.Contains(out.String(), u.String()) {
					t.Errorf("the output does not list %v:\n%s", u, &out)
				}
			}
			if fmt.Sprint(names) != fmt.Sprint(tt.unstable) {
				t.Errorf("unstable are %q, want %q", names, tt.unstable)
			}
			want := got.record
			if r, err := readRecord(n.record, "unit"); err != nil || r.Passed != want.Passed || r.Failed != want.Failed {
				t.Errorf("the record is %+v, %v", r, err)
			}
		})
	}
}

// shell returns a suite of one program.
func shell(name string, load float64, script string) *suite {
	return &suite{name: name, load: load, long: true, jobs: programs(program(name+"/x", "sh", "-c", script))}
}

// Suites run side by side while processors are free: each of two waits for a file of the other one.
func TestLanes(t *testing.T) {
	root := t.TempDir()
	n := &runner{root: root, record: filepath.Join(root, "dist/suites")}
	meet := func(mine, other string) string {
		return "touch " + mine + "; until [ -e " + other + " ]; do sleep 0.01; done"
	}
	var out strings.Builder
	results := n.runAll(context.Background(), []*suite{
		shell("a", 0.1, meet("a", "b")), shell("wide", 1000, "true"), shell("b", 0.1, meet("b", "a")),
	}, &out)
	if len(results) != 3 {
		t.Fatalf("%d suites ended:\n%s", len(results), &out)
	}
	for _, line := range []string{"a          a: 1 passed, 0 failed\n", "wide       wide: 1 passed, 0 failed\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("the output lacks %q:\n%s", line, &out)
		}
	}
}

// A suite that computes does not run beside a timed suite.
func TestTimedSuites(t *testing.T) {
	root := t.TempDir()
	n := &runner{root: root, record: filepath.Join(root, "dist/suites")}
	alone := "[ ! -e " + root + "/on ] && touch " + root + "/on && rm " + root + "/on"
	timed, busy := shell("timed", 0.1, alone), shell("busy", 1.5, alone)
	timed.timed = true
	if timed.bears(busy) || busy.bears(timed) || !timed.bears(timed) || !busy.bears(busy) {
		t.Error("a suite bears another one that it must not, or does not bear one that it may")
	}
	for _, suites := range [][]*suite{{timed, busy}, {busy, timed}} {
		var out strings.Builder
		for _, r := range n.runAll(context.Background(), suites, &out) {
			if !r.passed {
				t.Errorf("suite %s ran beside the other one:\n%s", r.suite.name, &out)
			}
		}
	}
}

func TestNoSuiteBeginsAfterAFailure(t *testing.T) {
	t.Setenv("GO_ON", "")
	root := t.TempDir()
	n := &runner{root: root, record: filepath.Join(root, "dist/suites")}
	suites := []*suite{shell("a", 1000, "echo broken; exit 1"), shell("b", 1000, "true")}
	var out strings.Builder
	results := n.runAll(context.Background(), suites, &out)
	if len(results) != 1 || results[0].passed {
		t.Fatalf("the results are %+v:\n%s", results, &out)
	}
	t.Setenv("GO_ON", "1")
	if all := n.runAll(context.Background(), suites, &out); len(all) != 2 || all[0].passed || !all[1].passed {
		t.Errorf("with GO_ON the results are %+v", all)
	}
	var end strings.Builder
	if conclude(&end, len(suites), results, 0) {
		t.Error("the run passed")
	}
	for _, want := range []string{
		"failed: a/x\n        broken\n        exit status 1\n        repeat it: sh -c 'echo broken; exit 1'\n",
		"1 suites were not begun, because another one failed\n", "\na: 0 passed, 1 failed\n",
	} {
		if !strings.Contains(end.String(), want) {
			t.Errorf("the end lacks %q:\n%s", want, &end)
		}
	}
}

// The last words of a failure are those of its test, and not of a server's log that follows.
func TestLastWords(t *testing.T) {
	logged := strings.Repeat("        time=2026-01-01 level=INFO msg=ready\n", 40)
	output := []string{
		"=== RUN   TestA\n", "    crowd.go:163: agent-6: unexpected: " + strings.Repeat("x", 2*shownBytes) + "\n",
		"    server.go:73: the log of a server:\n", logged, "--- FAIL: TestA (1.0s)\n",
	}
	words := lastWords(output)
	if len(words) != 2 || !strings.HasPrefix(words[0], "    crowd.go:163: agent-6") || len(words[0]) != shownBytes {
		t.Errorf("the last words are %q", words)
	}
	words = lastWords([]string{logged, "panic: nil\n"})
	if len(words) != shownLines || words[shownLines-1] != "panic: nil" {
		t.Errorf("the last words of a panic are %q", words)
	}
}

func TestTooManyUnstableTestsFail(t *testing.T) {
	u := unstable{"engine", "TestA", "dist/unstable/engine-TestA.txt"}
	s := &suite{name: "a"}
	for n, want := range map[int]bool{2: true, 3: false} {
		var results []result
		for range n {
			results = append(results, result{suite: s, passed: true, record: record{Passed: 1, Unstable: []unstable{u}}})
		}
		var out strings.Builder
		if got := conclude(&out, n, results, 0); got != want {
			t.Errorf("with %d unstable tests: %t, want %t:\n%s", n, got, want, &out)
		}
	}
}

// A shake lists each test that failed, once, with its output.
func TestShake(t *testing.T) {
	n, _ := checkout(t, "func TestA(t *testing.T) { if once(`a`) { t.Error(`late`) } }\n\nfunc TestB(t *testing.T) {}\n")
	t.Setenv("RUNS", "1")
	t.Setenv("PACKAGES", ".")
	var out strings.Builder
	ok, err := n.shake(context.Background(), &out)
	if err != nil {
		t.Fatal(err)
	}
	want := "failed 1 times: " + module + " TestA: dist/shake/1.txt\nshake: 3 passed, 1 failed\n"
	if ok || !strings.HasSuffix(out.String(), want) {
		t.Errorf("ok = %t, want the end %q:\n%s", ok, want, &out)
	}
	b, err := os.ReadFile(filepath.Join(n.root, "dist/shake/1.txt"))
	if err != nil || !strings.Contains(string(b), "late") {
		t.Errorf("the kept output is %q, %v", b, err)
	}
}

// A night continues after the recorded rounds, records each round, and ends with the first failure.
func TestNight(t *testing.T) {
	root := t.TempDir()
	n := &runner{root: root, record: filepath.Join(root, "dist/suites")}
	write := func(rounds int) {
		t.Helper()
		text := fmt.Sprintf(`{"night": {"rounds": %d}}`, rounds)
		if err := os.WriteFile(filepath.Join(root, "reliability.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name := range larger {
		t.Setenv(name, "1")
	}
	t.Setenv(search.Variable, "")
	write(4)
	var rounds []string
	seed := shell("seed", 1, "test $"+search.Variable+" -lt 7")
	var out strings.Builder
	ok, err := n.night(context.Background(), &out, "1", []*suite{seed}, func(records []string) error {
		rounds = append(rounds, os.Getenv(search.Variable)+" "+filepath.Base(records[0]))
		write(4 + len(rounds))
		return nil
	})
	if err != nil || ok || fmt.Sprint(rounds) != "[5 seed.json 6 seed.json]" {
		t.Errorf("ok = %t, %v, the rounds are %q:\n%s", ok, err, rounds, &out)
	}
	if want := "round 7 failed: repeat a test with " + search.Variable + "=7\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("the output does not end in %q:\n%s", want, &out)
	}
	for _, hours := range []string{"", "0", "-1", "all"} {
		if _, err := n.night(context.Background(), &out, hours, nil, nil); err == nil {
			t.Errorf("HOURS=%q is accepted", hours)
		}
	}
}

// Go reports on standard error what it downloads for a program that prints its findings.
func TestFindingsOfPrograms(t *testing.T) {
	root := t.TempDir()
	n := &runner{root: root, record: filepath.Join(root, "dist/suites")}
	for script, want := range map[string]bool{
		"true": true, "echo downloading >&2": true, "echo a.go": false, "exit 1": false,
	} {
		p := program("x", "sh", "-c", script)
		p.silent = true
		s := &suite{name: "lint", load: 1, long: true, jobs: programs(p)}
		var out strings.Builder
		results := n.runAll(context.Background(), []*suite{s}, &out)
		if len(results) != 1 || results[0].passed != want {
			t.Errorf("%s passed: %t, want %t:\n%s", script, !want, want, &out)
		}
	}
}
