package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mostUnstable is how many unstable tests a run of suites may have.
const mostUnstable = 2

// repeats is how often a test that failed is repeated alone. It is unstable if all of them pass.
const repeats = 2

// unstable is a test that failed in a whole run and passed alone.
type unstable struct {
	Package string `json:"package"`
	Test    string `json:"test"` // with the subtests that failed; "" is the package as a whole
	File    string `json:"file"` // that keeps the output of the failure
}

func (u unstable) String() string {
	return fmt.Sprintf("unstable: %s %s failed once and passed %d times alone: %s",
		u.Package, u.Test, repeats, u.File)
}

// A candidate may be unstable: the failures that one repetition covers.
type candidate struct {
	job      job
	pkg, run string
	failures []failure
}

// candidates returns the failures that may be repeated, or nothing if one of them is a proof.
func (r *report) candidates() (found []candidate) {
	for _, f := range r.failures {
		if f.proof {
			return nil
		}
		// The failure of a whole package covers its tests.
		whole := slices.ContainsFunc(r.failures, func(o failure) bool { return o.pkg == f.pkg && o.test == "" })
		run := alone(f.test)
		if whole {
			run = ""
		}
		i := slices.IndexFunc(found, func(c candidate) bool { return c.pkg == f.pkg && c.run == run })
		if i < 0 {
			i = len(found)
			found = append(found, candidate{job: f.job, pkg: f.pkg, run: run})
		}
		found[i].failures = append(found[i].failures, f)
	}
	return found
}

// forgive turns the failures of a candidate into an unstable test. passed is how many tests of a whole package its
// repetition counted.
func (r *report) forgive(c candidate, passed int, file string) {
	for _, f := range c.failures {
		if f.counted {
			r.failed--
		}
	}
	if c.run == "" {
		r.passed += passed - r.packages[c.pkg].passed
	} else {
		for _, f := range c.failures {
			if f.counted {
				r.passed++
			}
		}
	}
	covered := func(f failure) bool { return f.pkg == c.pkg && (c.run == "" || alone(f.test) == c.run) }
	r.failures = slices.DeleteFunc(r.failures, covered)
	r.unstable = append(r.unstable, unstable{short(c.pkg), c.name(), file})
}

// name names what failed, or returns "" for a package as a whole.
func (c candidate) name() string {
	var names []string
	for _, f := range c.failures {
		if f.counted && c.run != "" {
			names = append(names, f.test)
		}
	}
	return strings.Join(names, ", ")
}

// keep writes the output of a candidate's failures into a file of the folder, and returns its name.
func (c candidate) keep(folder string) (string, error) {
	name := regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(short(c.pkg)+" "+c.run, "-")
	file := filepath.Join(folder, strings.Trim(name, "-")+".txt")
	return file, keepOutput(file, c.failures)
}

// keepOutput writes the output of failures into a file, with the command that repeats the first one alone.
func keepOutput(file string, failures []failure) error {
	var b strings.Builder
	for _, f := range failures {
		fmt.Fprintf(&b, "--- %s\n%s", f.title, strings.Join(f.output, ""))
	}
	first := failures[0]
	fmt.Fprintf(&b, "\nrepeat it alone: %s\n", first.job.repeatable(first.pkg, first.test))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o666)
}
