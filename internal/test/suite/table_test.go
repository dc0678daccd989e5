package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each suite belongs to one of the groups that the build machine runs, and has a target in the Makefile.
func TestTable(t *testing.T) {
	all := slices.Concat(groups["test"], groups["prove"])
	b, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := strings.Fields(regexp.MustCompile(`(?m)^SUITES := (.*)$`).FindString(string(b)))
	for _, s := range table {
		if n := len(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name != s.name })); n != 1 {
			t.Errorf("suite %s is in %d groups", s.name, n)
		}
		if !slices.Contains(targets, s.name) {
			t.Errorf("SUITES of the Makefile does not have %s", s.name)
		}
	}
	for name, group := range groups {
		if _, err := find(group); err != nil {
			t.Errorf("group %s: %v", name, err)
		}
	}
}

// A package that suite unit does not test is tested by another suite.
func TestApart(t *testing.T) {
	var tested []string
	for _, s := range table {
		if s.name == "unit" || s.name == "fuzz" || s.name == "race" || s.name == "simulation" {
			continue
		}
		jobs, err := s.jobs()
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if j.folder == "" {
				tested = append(tested, j.packages...)
			}
		}
	}
	for _, p := range apart {
		if !slices.Contains(tested, p) {
			t.Errorf("no suite tests %s", p)
		}
	}
	for _, p := range tested {
		if !slices.Contains(apart, p) {
			t.Errorf("suite unit tests %s, too", p)
		}
	}
}

// Suite simulation finds the tests that have a long form, also those that ask by way of another function.
func TestLongForms(t *testing.T) {
	jobs, err := longTests()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"./engine", "./sim", "./merge/merger", "./workspace"} {
		if !slices.Contains(jobs[0].packages, want) {
			t.Errorf("the job lacks package %s: %q", want, jobs[0].packages)
		}
	}
	for _, want := range []string{"TestModelLong", "TestWorlds", "TestCrashEverywhere", "TestKilledMerger"} {
		if !regexp.MustCompile(jobs[0].run).MatchString(want) {
			t.Errorf("the job does not run %s: %s", want, jobs[0].run)
		}
	}
}

func TestAlone(t *testing.T) {
	for name, want := range map[string]string{
		"":                       "",
		"TestA":                  "^TestA$",
		"TestA/x/y/z":            "^TestA$",
		"TestA/3.13/t.py::t[a]x": "^TestA$",
	} {
		if got := alone(name); got != want {
			t.Errorf("alone(%q) = %q, want %q", name, got, want)
		}
	}
}

// The packages that take longest begin first, and each of them is there.
func TestLongest(t *testing.T) {
	packages, err := unitPackages()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range longest {
		if short(packages[i]) != want {
			t.Errorf("package %d is %s, want %s", i, short(packages[i]), want)
		}
	}
}
