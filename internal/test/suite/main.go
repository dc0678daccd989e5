package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

const usage = `usage:
  suite NAME...            run suites, or groups of them: test, prove, engines
  suite list               print all suites
  suite sum                print the results of the last runs of all suites, and how long they took
  suite apart              print a pattern of the packages that are suites of their own
  suite times              print how long each suite took, by commit
  suite shake              run all packages RUNS (10) times under load, list what failed once
  suite night              run rounds of searches for HOURS, from seeds of their own, and record them
  suite slow               print the fifty slowest tests of the last runs
  suite -stdin NAME        summarise the output of "go test -json" from standard input
`

func main() {
	stdin := flag.Bool("stdin", false, "read the output of go test -json from standard input")
	brief := flag.Bool("short", false, "with -stdin: the tests run with -short and may leave themselves out")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	if flag.NArg() == 0 || *stdin && flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if *stdin {
		r := newReport(os.Stdout)
		r.short = *brief
		if !summarise(r, flag.Arg(0), os.Stdin, time.Tick(reassure)) {
			os.Exit(1)
		}
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	ok, err := carryOut(ctx, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// summarise reads events until in ends and reports whether the suite passed.
func summarise(r *report, name string, in io.Reader, quiet <-chan time.Time) bool {
	r.read(in, quiet)
	r.end()
	return r.finish(name)
}

// carryOut does what the words of the command line ask for.
func carryOut(ctx context.Context, words []string, out io.Writer) (ok bool, err error) {
	top, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return false, fmt.Errorf("go env GOMOD: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(top)))
	n := &runner{root: root, record: filepath.Join(root, "dist/suites")}
	switch words[0] {
	case "list":
		for _, s := range table {
			fmt.Fprintf(out, "  make %-12s %s\n", s.name, s.about)
		}
		return true, nil
	case "apart":
		patterns := make([]string, len(apart))
		for i, p := range apart {
			p, all := strings.CutSuffix(strings.TrimPrefix(p, "."), "/...")
			patterns[i] = p + map[bool]string{true: "(/|$)", false: "$"}[all]
		}
		_, err := fmt.Fprintln(out, strings.Join(patterns, "|"))
		return true, err
	case "times":
		return true, printTimes(out, root, shownCommits)
	case "shake":
		return n.shake(ctx, out)
	case "night":
		suites, err := find(searches)
		if err != nil {
			return false, err
		}
		return n.night(ctx, out, setting("HOURS", ""), suites, func(records []string) error {
			return n.noteRound(ctx, out, records)
		})
	case "sum":
		return n.sum(out)
	case "slow":
		return true, printSlow(out, n.record, 50)
	}
	var names []string
	for _, w := range words {
		if group, ok := groups[w]; ok {
			names = append(names, group...)
		} else {
			names = append(names, w)
		}
	}
	suites, err := find(names)
	if err != nil {
		return false, err
	}
	began := time.Now()
	results := n.runAll(ctx, suites, out)
	if err := addTimes(root, began, results); err != nil {
		return false, err
	}
	if len(suites) == 1 {
		return results[0].passed, nil
	}
	return conclude(out, len(suites), results, time.Since(began)), nil
}

// sum prints the results of the last runs of all suites, and reports whether all passed, with few unstable tests.
func (n *runner) sum(out io.Writer) (ok bool, err error) {
	var results []result
	for i := range table {
		s := &table[i]
		r, err := readRecord(n.record, s.name)
		if err != nil {
			return false, fmt.Errorf("suite %s has not run: %w", s.name, err)
		}
		results = append(results, result{suite: s, passed: r.Failed == 0, record: r})
	}
	if err := printTimes(out, n.root, shownCommits); err != nil {
		return false, err
	}
	return conclude(out, len(table), results, 0), nil
}

// shownCommits is how many commits a table of times has.
const shownCommits = 6

// conclude prints the result of several suites: first how long they took, last what failed. It reports whether all
// passed. The time of all is not printed if it is zero.
func conclude(out io.Writer, suites int, results []result, took time.Duration) bool {
	fmt.Fprintf(out, "\n%-12s %8s %12s %6s %8s %8s\n", "suite", "seconds", "cpu seconds", "load", "passed", "failed")
	unstable, failed := 0, 0
	for _, r := range results {
		fmt.Fprintf(out, "%-12s %8.0f %12.0f %6.1f %8d %8d\n",
			r.suite.name, r.record.Seconds, r.record.CPU, r.record.Load, r.record.Passed, r.record.Failed)
		unstable += len(r.record.Unstable)
		if !r.passed {
			failed++
		}
	}
	if took > 0 {
		fmt.Fprintf(out, "%-12s %8.0f\n", "together", took.Seconds())
	}
	fmt.Fprintln(out)
	for _, r := range results {
		for _, u := range r.record.Unstable {
			fmt.Fprintln(out, u)
		}
		for i, f := range r.failures {
			if i == shownAtEnd {
				fmt.Fprintf(out, "failed: %d more of %s\n", len(r.failures)-i, r.suite.name)
				break
			}
			fmt.Fprintf(out, "failed: %s\n", f.title)
			if i < shownAtOnce {
				for _, line := range lastWords(f.output) {
					fmt.Fprintf(out, "        %s\n", line)
				}
			}
			if f.counted {
				fmt.Fprintf(out, "        repeat it: %s\n", f.job.repeatable(f.pkg, f.test))
			}
		}
	}
	if n := suites - len(results); n > 0 {
		fmt.Fprintf(out, "%d suites were not begun, because another one failed\n", n)
	}
	if unstable > mostUnstable {
		fmt.Fprintf(out, "%d unstable tests are more than %d\n", unstable, mostUnstable)
		failed++
	}
	for _, r := range results {
		fmt.Fprintf(out, "%s: %d passed, %d failed\n", r.suite.name, r.record.Passed, r.record.Failed)
	}
	return failed == 0 && len(results) == suites
}

// lastWords returns the lines of a failure's output that tell most: the last that the test wrote itself, each with the
// place in its source, and not the log of a server, which comes after them. Without any it returns the last lines.
func lastWords(output []string) []string {
	lines := strings.Split(strings.TrimSuffix(strings.Join(output, ""), "\n"), "\n")
	if own := ownLines(lines); len(own) > 0 {
		lines = own
	}
	lines = lines[max(0, len(lines)-shownLines):]
	for i, l := range lines {
		lines[i] = l[:min(len(l), shownBytes)]
	}
	return lines
}

// ownLines returns the lines that a test has written itself, by testing.T.Log and its like.
func ownLines(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !ownWords.MatchString(line) })
}

var ownWords = regexp.MustCompile(`^\s+\w+\.go:\d+: `)
