package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// crowd is how many packages run side by side in a shake, for each processor: they are the load of one another.
const crowd = 3

// A fault is a test that failed in a shake.
type fault struct {
	title string
	times int
	file  string // that has the output of the first time
}

// shake runs the short form of all packages several times, with the race detector where it sees anything and without
// it, under a load of several times the processors. It repeats nothing alone: a test that failed once is a fault, and
// the shake lists all faults at its end.
func (n *runner) shake(ctx context.Context, out io.Writer) (ok bool, err error) {
	runs, err := strconv.Atoi(setting("RUNS", "10"))
	if err != nil || runs < 1 {
		return false, fmt.Errorf("RUNS is %q: want a number of runs", setting("RUNS", ""))
	}
	packages, err := unitPackages()
	if err != nil {
		return false, err
	}
	if only := strings.Fields(setting("PACKAGES", "")); len(only) > 0 {
		packages = only
	}
	faults := map[string]*fault{}
	passed, load := 0, newLoad()
	for run := 1; run <= runs; run++ {
		for _, j := range shakeJobs(packages) {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			fmt.Fprintf(out, "run %d of %d: go test %s\n", run, runs, strings.Join(j.flags, " "))
			r := newReport(out)
			r.short, r.job = true, j
			n.do(ctx, r, j, j.command("", j.packages))
			r.end()
			passed += r.passed
			if err := n.blame(faults, r); err != nil {
				return false, err
			}
		}
	}
	fmt.Fprintf(out, "\nthe mean load was %.1f on %d processors\n", load.mean(), runtime.NumCPU())
	byTitle := func(a, b *fault) int { return cmp.Compare(a.title, b.title) }
	for _, f := range slices.SortedFunc(maps.Values(faults), byTitle) {
		fmt.Fprintf(out, "failed %d times: %s: %s\n", f.times, f.title, f.file)
	}
	fmt.Fprintf(out, "shake: %d passed, %d failed\n", passed, len(faults))
	return len(faults) == 0, nil
}

// shakeJobs returns the jobs of one run: all tests of the packages, and those in which the race detector sees anything
// once more under it.
func shakeJobs(packages []string) []job {
	flags := []string{"-short", "-count=1", "-timeout=60m", "-p=" + strconv.Itoa(crowd*runtime.NumCPU())}
	jobs := []job{{flags: flags, packages: packages}}
	detected := job{flags: append(slices.Clone(flags), "-race"), skip: sequential}
	few := job{flags: detected.flags, run: parallel}
	for _, p := range packages {
		if slices.Contains(unseen, short(p)) {
			few.packages = append(few.packages, p)
		} else {
			detected.packages = append(detected.packages, p)
		}
	}
	for _, j := range []job{detected, few} {
		if len(j.packages) > 0 {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// blame adds the failures of a report to the faults, and keeps the output of those that are new.
func (n *runner) blame(faults map[string]*fault, r *report) error {
	for _, f := range r.failures {
		if !f.counted && f.pkg != "" { // its subtests failed
			continue
		}
		known := faults[f.title]
		if known == nil {
			known = &fault{title: f.title, file: filepath.Join("dist/shake", strconv.Itoa(len(faults)+1)+".txt")}
			faults[f.title] = known
			if err := keepOutput(filepath.Join(n.root, known.file), []failure{f}); err != nil {
				return err
			}
		}
		known.times++
	}
	return nil
}
