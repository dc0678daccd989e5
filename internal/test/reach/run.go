package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// workers is how many packages are tested at a time. Most tests wait for a disk, a server or a clock.
const workers = 4

// runner carries out a plan. It writes to out what go test -json writes, and to log what people read.
type runner struct {
	root     string
	flags    []string
	out, log io.Writer
	deadline time.Time

	mu   sync.Mutex
	left []string // packages with tests that did not begin in time
}

// announce prints what has changed, and what it may break.
func (r *runner) announce(c *change, p *plan) {
	base := c.base
	if len(base) == 40 {
		base = base[:12]
	}
	if len(c.files) == 0 {
		fmt.Fprintf(r.log, "nothing differs from %s: the tests that compare registers run, and no others\n", base)
		return
	}
	fmt.Fprintf(r.log, "%s from %s, in %s\n", differ(len(c.files)), base, list(p.changed, "no package"))
	packages := 0
	for _, one := range p.runs {
		if !one.own {
			packages++
		}
	}
	fmt.Fprintf(r.log, "%d tests of %d other packages can reach the change\n", p.reached, packages)
	if len(p.apart) > 0 {
		fmt.Fprintf(r.log, "not run, suites of their own that can reach the change: %s\n", list(p.apart, ""))
	}
	if len(p.modules) > 0 {
		fmt.Fprintf(r.log, "not run, modules of their own that have or use what changed: %s\n", list(p.modules, ""))
	}
}

func differ(files int) string {
	if files == 1 {
		return "1 file differs"
	}
	return fmt.Sprintf("%d files differ", files)
}

func list(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}

// run runs the tests of the plan, those of the nearest packages first.
func (r *runner) run(p *plan) error {
	if len(p.faults) > 0 {
		for _, pkg := range slices.Sorted(maps.Keys(p.faults)) {
			r.fail(pkg, "does not compile:\n"+strings.Join(p.faults[pkg], "\n")+"\n")
		}
		return nil
	}
	if err := r.vet(p.vet); err != nil {
		return err
	}
	// Alone, so that the packages which most tests need are compiled once, and because command suite takes one run
	// of a package after the other.
	failed := []error{r.test(registersOf(p.always, true)), r.test(registersOf(p.always, false))}

	long, err := leaveOut(r.root, p.runs)
	if err != nil {
		return err
	}
	p.runs = slices.DeleteFunc(p.runs, func(one *run) bool { return len(one.tests) == 0 && !one.whole })
	times := readTimes(r.root)
	slices.SortStableFunc(p.runs, func(a, b *run) int {
		if a.own != b.own {
			return cmp.Compare(when(b.own), when(a.own))
		}
		return cmp.Compare(times.of(a), times.of(b))
	})
	jobs := make(chan *run)
	errs := make(chan error, workers)
	for range workers {
		go func() {
			var failed []error
			for one := range jobs {
				began := time.Now()
				cached, err := r.tests(one)
				if !cached {
					times.note(one, time.Since(began))
				}
				failed = append(failed, err)
			}
			errs <- errors.Join(failed...)
		}()
	}
	for _, one := range p.runs {
		if one.own {
			jobs <- one
			continue
		}
		wait := time.Until(r.deadline.Add(-times.of(one)))
		if wait > 0 {
			select {
			case jobs <- one:
				continue
			case <-time.After(wait):
			}
		}
		r.left = append(r.left, one.dir)
	}
	close(jobs)
	for range workers {
		failed = append(failed, <-errs)
	}
	times.write()
	if len(long) > 0 {
		fmt.Fprintf(
			r.log, "not run, because they take long: %d tests of unchanged packages, which make test runs:\n  %s\n",
			len(long), strings.Join(long, "\n  "),
		)
	}
	if len(r.left) > 0 {
		fmt.Fprintf(
			r.log, "not run, because the time was over: tests of %d packages, which make test runs:\n  %s\n",
			len(r.left), strings.Join(r.left, "\n  "),
		)
	}
	return errors.Join(failed...)
}

func when(b bool) int {
	if b {
		return 1
	}
	return 0
}

// registersOf returns the arguments for the registers, those that are all tests of a package or the others. They are
// always the same, so the go command knows the results while nothing has changed.
func registersOf(runs []*run, whole bool) (args []string) {
	all := &run{tests: map[string]bool{}}
	for _, one := range runs {
		if one.whole == whole {
			args = append(args, "./"+one.dir)
			maps.Copy(all.tests, one.tests)
		}
	}
	if !whole && len(args) > 0 {
		args = append([]string{"-run", all.pattern()}, args...)
	}
	return args
}

// tests runs the tests of a package, and reports whether the go command knew the result.
func (r *runner) tests(one *run) (cached bool, err error) {
	var args []string
	if !one.whole {
		args = append(args, "-run", one.pattern())
	} else if len(one.skip) > 0 {
		args = append(args, "-skip", pattern(one.skip))
	}
	return r.goTest(append(args, "./"+one.dir))
}

// vet runs go vet over the packages with changes.
func (r *runner) vet(dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	args := []string{"vet"}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = r.root
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		r.fail("go vet", string(out))
		return nil
	}
	return err
}

func (r *runner) test(args []string) error {
	if len(args) == 0 {
		return nil
	}
	_, err := r.goTest(args)
	return err
}

// goTest runs go test, and copies its events line by line.
func (r *runner) goTest(args []string) (cached bool, err error) {
	args = slices.Concat([]string{"test", "-json"}, r.flags, args)
	cmd := exec.Command("go", args...)
	cmd.Dir = r.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	failed := false
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		failed = failed || bytes.Contains(line, []byte(`"Action":"fail"`))
		cached = cached || bytes.Contains(line, []byte("(cached)"))
		r.write(line)
		if err != nil {
			break
		}
	}
	// Command suite counts the tests that failed. It must also hear of a go command that ran none.
	if err := cmd.Wait(); err != nil && !failed {
		return false, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return cached, nil
}

// fail writes the events of a package that fails.
func (r *runner) fail(pkg, text string) {
	for line := range strings.Lines(text) {
		r.event(map[string]string{"Action": "output", "Package": pkg, "Output": line})
	}
	r.event(map[string]string{"Action": "fail", "Package": pkg})
}

func (r *runner) event(e map[string]string) {
	b, _ := json.Marshal(e)
	r.write(append(b, '\n'))
}

func (r *runner) write(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Write(line)
}
