package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// event is a line of "go test -json"; see "go doc test2json".
type event struct {
	Time       time.Time
	Action     string
	Package    string
	ImportPath string // instead of Package, for messages of the compiler
	Test       string
	Elapsed    float64
	Output     string
	Key, Value string // of an attribute that a test gave itself
}

// report gathers events. It keeps the output of a test only until the test has
// passed.
type report struct {
	out      io.Writer
	short    bool // tests may leave themselves out
	search   bool // every failure is a proof
	job      job  // that is running
	packages map[string]*pkg
	builds   map[string][]string // the compiler's output by import path
	lost     []string            // what was no event, or came at the wrong time
	passed   int
	failed   int
	failures []failure
	unstable []unstable
	counts   map[string]int64 // counts that tests report, by name
	tests    []testTime
	last     time.Time     // of the newest event
	took     time.Duration // of the run; if zero, the report has no line with its duration
}

type pkg struct {
	name   string
	job    job
	tests  map[string]*test
	output []string // printed by the package outside of any test
	passed int
	failed int
	done   bool
}

type test struct {
	started time.Time
	output  []string
	parent  bool // has subtests, so it is not counted when it passes
	below   bool // a subtest failed, so its own failure is not counted
}

// failure is the report's excerpt of a test or a package.
type failure struct {
	title   string
	output  []string
	job     job
	pkg     string
	test    string // "" is the package as a whole
	counted bool
	proof   bool // it is never repeated
}

// testTime is how long a test took.
type testTime struct {
	Package string  `json:"package"`
	Test    string  `json:"test"`
	Seconds float64 `json:"seconds"`
}

// shownAtOnce is how many failures a suite prints while it runs, and excerpt how many lines of each: the rest comes at
// its end. The last lines of all suites repeat some of them, because a reader may have no more than those.
const (
	shownAtOnce = 3
	excerpt     = 60
	shownAtEnd  = 20 // names of failures of a suite at the end of the run
	shownLines  = 12 // of the output of the first of them
	shownBytes  = 500
)

// seeds matches the output of a test that found its failure by a search: repeating the test without the seed
// shows nothing.
var seeds = regexp.MustCompile(`(?i)\bseed\b|\bhistory (is not|is in|does not)|not linearizable`)

// downloading begins Go's lines about modules that it fetches first, on a machine with empty caches.
const downloading = "go: downloading "

// race is the first line of a report of the race detector.
const race = "WARNING: DATA RACE"

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*pkg{}, builds: map[string][]string{}, counts: map[string]int64{}}
}

// add takes one line of input.
func (r *report) add(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		if !bytes.HasPrefix(line, []byte(downloading)) {
			r.stray(string(line))
		}
		return
	}
	if !e.Time.IsZero() {
		r.last = e.Time
	}
	if e.Action == "build-output" {
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.packages[e.Package]
	if p == nil || p.done { // several runs of one package may follow each other
		p = &pkg{name: e.Package, job: r.job, tests: map[string]*test{}}
		r.packages[e.Package] = p
	}
	if e.Test == "" {
		r.packageEvent(p, &e)
		return
	}
	r.testEvent(p, &e)
}

// stray keeps what the tool did not expect: it is shown at the end and fails the
// suite, because something was not tested.
func (r *report) stray(text string) {
	if strings.TrimSpace(text) != "" {
		r.lost = append(r.lost, text+"\n")
	}
}

func (r *report) testEvent(p *pkg, e *event) {
	t := p.tests[e.Test]
	if t == nil {
		t = &test{started: e.Time}
		p.tests[e.Test] = t
	}
	switch e.Action {
	case "run":
		if up := p.parentOf(e.Test); up != nil {
			up.parent = true
		}
	case "output":
		t.output = append(t.output, e.Output)
	case "attr":
		r.count(e)
	case "pass":
		if !t.parent {
			p.passed++
		}
		r.time(p, e)
		delete(p.tests, e.Test)
	case "skip":
		delete(p.tests, e.Test)
		switch {
		case strings.HasPrefix(e.Test, "Fuzz"):
		case r.short:
			fmt.Fprintf(r.out, "...   %s %s is left out of a short run\n", short(p.name), e.Test)
		default:
			r.fail(p, e.Test, "was skipped", t)
		}
	case "fail":
		r.time(p, e)
		delete(p.tests, e.Test)
		r.fail(p, e.Test, "", t)
	}
}

// parentOf returns the running test that a subtest belongs to, or nil. The name of a subtest may have slashes itself.
func (p *pkg) parentOf(name string) *test {
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		if up := p.tests[name[:i]]; up != nil {
			return up
		}
	}
	return nil
}

// time notes how long a test took, unless that is next to nothing.
func (r *report) time(p *pkg, e *event) {
	if e.Elapsed >= 0.1 {
		r.tests = append(r.tests, testTime{short(p.name), e.Test, e.Elapsed})
	}
}

// count adds a count that a test reports: its attribute "count.seeds" with the value "400"
// means that it ran 400 seeds.
func (r *report) count(e *event) {
	what, ok := strings.CutPrefix(e.Key, "count.")
	if !ok {
		return
	}
	n, err := strconv.ParseInt(e.Value, 10, 64)
	if err != nil || n < 0 {
		r.stray(fmt.Sprintf("%s of %s counts %q", e.Test, e.Package, e.Value))
		return
	}
	r.counts[what] += n
}

func (r *report) packageEvent(p *pkg, e *event) {
	switch e.Action {
	case "output":
		p.output = append(p.output, e.Output)
	case "pass", "skip", "fail":
		r.close(p, e.Action == "fail", e.Elapsed)
	}
}

// close ends a package. Tests that are still open were running when it died.
func (r *report) close(p *pkg, failed bool, seconds float64) {
	p.done = true
	if open := slices.Sorted(maps.Keys(p.tests)); len(open) > 0 {
		// The process died, and other tests may not have run: the whole package failed.
		for _, name := range open {
			r.fail(p, name, "did not end", p.tests[name])
			r.failures[len(r.failures)-1].test = ""
		}
	}
	if failed && p.failed == 0 {
		p.failed++
		built := r.buildOutput(p.name)
		r.show(failure{
			title: p.name, output: append(built, p.output...), job: p.job, pkg: p.name, counted: true,
			proof: r.search || len(built) > 0 || proves("", p.output),
		})
	}
	r.passed += p.passed
	r.failed += p.failed
	switch {
	case p.failed > 0:
		fmt.Fprintf(r.out, "FAIL  %-44s %5d of %d failed\n", short(p.name), p.failed, p.passed+p.failed)
	case p.passed > 0:
		fmt.Fprintf(r.out, "ok    %-44s %5d passed %7.1fs\n", short(p.name), p.passed, seconds)
	}
	p.tests = nil
	p.output = nil
}

func (r *report) fail(p *pkg, name, why string, t *test) {
	if up := p.parentOf(name); up != nil {
		up.below = true
	}
	if !t.below {
		p.failed++
	}
	title := p.name + " " + name
	if why != "" {
		title += " " + why
	}
	r.show(failure{
		title: title, output: t.output, job: p.job, pkg: p.name, test: name, counted: !t.below,
		proof: r.search || proves(name, t.output),
	})
}

// proves reports whether the failure of a test shows a defect, however often the test passes when it is repeated.
func proves(name string, output []string) bool {
	return strings.HasPrefix(name, "Fuzz") || slices.ContainsFunc(output, func(line string) bool {
		return strings.Contains(line, race) || seeds.MatchString(line)
	})
}

// show keeps a failure, and prints the first ones at once.
func (r *report) show(f failure) {
	r.failures = append(r.failures, f)
	if !f.counted || len(r.failures) > shownAtOnce {
		return
	}
	output := f.output
	if n := len(output); n > excerpt {
		hidden := output[:n-excerpt]
		more := fmt.Sprintf("... %d lines, which the end of the suite shows\n", len(hidden))
		own := ownLines(hidden)
		output = slices.Concat(own[max(0, len(own)-shownLines):], []string{more}, output[n-excerpt:])
	}
	text := strings.Join(output, "")
	fmt.Fprintf(r.out, "\n--- %s\n%s--- repeat it: %s\n\n", f.title, text, f.job.repeatable(f.pkg, f.test))
}

// buildOutput returns the compiler's messages about the package or its test variant, which is
// written "path [path.test]".
func (r *report) buildOutput(name string) (lines []string) {
	for _, path := range slices.Sorted(maps.Keys(r.builds)) {
		if path == name || strings.HasPrefix(path, name+" ") || strings.HasSuffix(path, "["+name+".test]") {
			lines = append(lines, r.builds[path]...)
		}
	}
	return lines
}

// stillRunning names the test that has run longest.
func (r *report) stillRunning(now time.Time) {
	type activeTest struct {
		name  string
		since time.Time
	}
	var open []activeTest
	for _, p := range r.packages {
		for name, t := range p.tests {
			if !t.parent && !p.done {
				open = append(open, activeTest{short(p.name) + " " + name, t.started})
			}
		}
	}
	slices.SortFunc(open, func(a, b activeTest) int {
		if c := a.since.Compare(b.since); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	if len(open) == 0 {
		fmt.Fprintln(r.out, "...   building")
		return
	}
	fmt.Fprintf(r.out, "...   %s has been running for %s\n", open[0].name, now.Sub(open[0].since).Round(time.Second))
}

// end notes what should have come and did not. No event follows it.
func (r *report) end() {
	for _, path := range slices.Sorted(maps.Keys(r.packages)) {
		if p := r.packages[path]; !p.done {
			r.stray("the output of " + path + " is cut off")
			r.close(p, true, 0)
		}
	}
	if len(r.lost) > 0 {
		r.failed++
		r.show(failure{title: "unexpected output", output: r.lost, job: r.job, proof: true})
		r.lost = nil
	}
	if r.failed == 0 && r.passed == 0 {
		r.failed++
		r.show(failure{title: "no test ran", job: r.job, proof: true})
	}
}

// finish prints the failures and the count, and reports whether all is well.
func (r *report) finish(name string) bool {
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Fprintf(r.out, "%12d %s\n", r.counts[what], what)
	}
	if r.took > 0 {
		fmt.Fprintf(r.out, "%s took %.0f s\n", name, r.took.Seconds())
	}
	for _, f := range r.failures {
		fmt.Fprintf(r.out, "\n--- %s\n%s", f.title, strings.Join(f.output, ""))
	}
	if len(r.failures) > 0 {
		fmt.Fprintln(r.out)
	}
	for _, u := range r.unstable {
		fmt.Fprintln(r.out, u)
	}
	fmt.Fprintf(r.out, "%s: %d passed, %d failed\n", name, r.passed, r.failed)
	return r.failed == 0
}

const module = "github.com/interlockdev/interlock"

// short cuts the module's name off a package path.
func short(path string) string {
	if rest, ok := strings.CutPrefix(path, module+"/"); ok {
		return rest
	}
	return path
}
