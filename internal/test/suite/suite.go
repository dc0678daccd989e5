package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// A suite is a set of tests that is run, reported and timed as one.
type suite struct {
	name  string
	about string // what it checks, for the list
	// load is the number of processors that it keeps busy on average. Suites that wait run beside suites that
	// compute.
	load    float64
	scripts []string // install what it needs, in this order, with their arguments
	jobs    func() ([]job, error)
	// timed is for tests with real servers that must not take longer than is promised. No suite that computes runs
	// beside them.
	timed  bool
	search bool // a failure is a proof and is never repeated
	long   bool // its tests do not leave anything out, so a skipped test is a failure
}

// computes reports whether the suite takes a processor and more from those beside it.
func (s *suite) computes() bool { return s.load >= 1.5 }

// bears reports whether another suite may run beside this one.
func (s *suite) bears(other *suite) bool {
	return !(s.timed && other.computes() || other.timed && s.computes())
}

// A job is a command of a suite: "go test -json", or a program that counts as one test.
type job struct {
	name string // of a program, as a test; "" for go test
	argv []string
	// silent is for a program that prints its findings and exits with 0: any standard output is a failure. Its standard
	// error has also what Go downloads first.
	silent bool

	folder   string   // of the module, below the root; "" is the module of the product
	flags    []string // of go test
	packages []string
	skip     string // a pattern of tests to leave out
	run      string // a pattern of tests to run
	args     []string
	env      []string
}

// quick leaves out what no test needs: lint vets, and debugging symbols make a hundred test programs slower to link.
var quick = []string{"-vet=off", "-ldflags=-w"}

// command returns the argument list of the job, for the tests that run selects in the packages. An empty run is all of
// them.
func (j job) command(run string, packages []string, extra ...string) []string {
	if j.name != "" {
		return j.argv
	}
	argv := []string{"go"}
	if j.folder != "" {
		argv = append(argv, "-C", j.folder)
	}
	argv = append(append(append(argv, "test", "-json"), quick...), j.flags...)
	argv = append(argv, extra...)
	if run == "" {
		run = j.run
	}
	if run != "" {
		argv = append(argv, "-run", run)
	}
	if j.skip != "" {
		argv = append(argv, "-skip", j.skip)
	}
	return append(append(argv, packages...), j.args...)
}

// repeatable returns the shell command that repeats a test alone.
func (j job) repeatable(path, test string) string {
	if j.name != "" {
		return strings.Join(quoted(j.argv), " ")
	}
	j.flags = slices.DeleteFunc(slices.Clone(j.flags), func(f string) bool { return strings.HasPrefix(f, "-p=") })
	argv := j.command(alone(test), []string{target(j.folder, path)}, "-count=1")
	argv = slices.DeleteFunc(argv, func(a string) bool { return a == "-json" || slices.Contains(quick, a) })
	return strings.Join(append(append(quoted(j.env), variable+"=1"), quoted(argv)...), " ")
}

// variable asks for the tests that need more than Go; see internal/test/tools.
const variable = "INTERLOCK_TEST_TOOLS"

// target returns the argument of go test for a package.
func target(folder, path string) string {
	if folder != "" {
		return path
	}
	if path == module {
		return "."
	}
	return "./" + short(path)
}

// alone returns the pattern that selects a test with all its subtests: one of them may need what another one built.
func alone(test string) string {
	if test == "" {
		return ""
	}
	name, _, _ := strings.Cut(test, "/")
	return "^" + name + "$"
}

// quoted returns the words as a shell reads them.
func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`|&;<>()*?[]{}^!#~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return out
}

// setting returns a value of the environment, such as FAILOVERS=10 of a call of make, or its default.
func setting(name, or string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return or
}

// find returns the suites with the names, in the order of the table.
func find(names []string) ([]*suite, error) {
	var found []*suite
	for i := range table {
		if slices.Contains(names, table[i].name) {
			found = append(found, &table[i])
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(table, func(s suite) bool { return s.name == name }) {
			return nil, fmt.Errorf("there is no suite %q: bin/suite list prints them", name)
		}
	}
	return found, nil
}
