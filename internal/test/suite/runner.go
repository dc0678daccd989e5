package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// reassure is how long a suite keeps quiet at most. A kill loop runs for minutes, and a silent build server looks
// like a dead one.
const reassure = 30 * time.Second

// A runner runs suites in a checkout.
type runner struct {
	root   string
	record string // the folder of records
}

// result is the outcome of a suite's run.
type result struct {
	suite    *suite
	passed   bool
	record   record
	failures []failure // that are counted
}

// run runs one suite, and writes what it has to say to out.
func (n *runner) run(ctx context.Context, s *suite, out io.Writer) result {
	began, load := time.Now(), newLoad()
	r := newReport(out)
	r.short, r.search = !s.long && !longForm(), s.search
	var cpu time.Duration
	if err := n.prepare(ctx, s, out); err != nil {
		r.stray(err.Error())
	} else if jobs, err := s.jobs(); err != nil {
		r.stray(err.Error())
	} else {
		for _, j := range jobs {
			r.job = j
			cpu += n.do(ctx, r, j, j.command("", j.packages))
		}
	}
	r.end()
	cpu += n.repeat(ctx, r)
	r.took = time.Since(began)
	ok := r.finish(s.name)
	rec := record{
		Suite: s.name, Passed: r.passed, Failed: r.failed, Counts: r.counts, Seconds: r.took.Seconds(),
		CPU: cpu.Seconds(), Load: load.mean(), Unstable: r.unstable, Tests: r.slowest(),
	}
	if err := rec.write(n.record); err != nil {
		fmt.Fprintln(out, "suite:", err)
		ok = false
	}
	failures := slices.DeleteFunc(slices.Clone(r.failures), func(f failure) bool { return !f.counted && f.pkg != "" })
	return result{s, ok, rec, failures}
}

// prepare installs what the suite needs.
func (n *runner) prepare(ctx context.Context, s *suite, out io.Writer) error {
	for _, script := range s.scripts {
		cmd := exec.CommandContext(ctx, "bash", strings.Fields(script)...)
		cmd.Dir = n.root
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", script, err)
		}
	}
	return nil
}

// do runs a command of a job, feeds the report, and returns the processor time that it took.
func (n *runner) do(ctx context.Context, r *report, j job, argv []string) time.Duration {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = n.root
	cmd.WaitDelay = time.Minute // a process that a test left behind may keep its output open for ever
	// Without the path of the checkout in what is compiled, all clones on a machine share the build cache.
	cmd.Env = append(append(os.Environ(), variable+"=1", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath"), j.env...)
	if j.name != "" {
		return n.program(r, j, cmd)
	}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	ended := make(chan error, 1)
	go func() {
		err := cmd.Run()
		in.Close()
		ended <- err
	}()
	before := r.failed
	r.read(out, time.Tick(reassure))
	err := <-ended
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && r.failed > before: // the failures explain it
	default:
		r.stray(strings.Join(argv, " ") + ": " + err.Error())
	}
	return spent(cmd)
}

// program runs a program that counts as one test.
func (n *runner) program(r *report, j job, cmd *exec.Cmd) time.Duration {
	began := time.Now()
	var findings, out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if j.silent {
		cmd.Stdout = &findings
	}
	err := cmd.Run()
	if err == nil && len(bytes.TrimSpace(findings.Bytes())) > 0 {
		err = errors.New("it has something to say")
	}
	took := time.Since(began)
	r.tests = append(r.tests, testTime{"", j.name, took.Seconds()})
	if err == nil {
		r.passed++
		fmt.Fprintf(r.out, "ok    %-44s %5d passed %7.1fs\n", j.name, 1, took.Seconds())
		return spent(cmd)
	}
	r.failed++
	fmt.Fprintf(r.out, "FAIL  %-44s %v\n", j.name, err)
	said := []string{findings.String() + out.String(), err.Error() + "\n"}
	r.show(failure{title: j.name, output: said, job: j, counted: true, proof: true})
	return spent(cmd)
}

func spent(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// read feeds the report until in ends.
func (r *report) read(in io.Reader, quiet <-chan time.Time) {
	lines := make(chan []byte)
	failed := make(chan error, 1)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			lines <- bytes.Clone(s.Bytes())
		}
		failed <- s.Err()
		_, _ = io.Copy(io.Discard, in) // after a line that is too long
	}()
	for {
		select {
		case line, more := <-lines:
			if !more {
				if err := <-failed; err != nil {
					r.stray("cannot read the test output: " + err.Error())
				}
				return
			}
			r.add(line)
		case <-quiet:
			r.stillRunning(time.Now())
		}
	}
}

// repeat repeats alone what failed, unless one of the failures is a proof or there are too many, and forgives what
// passes each time.
func (n *runner) repeat(ctx context.Context, r *report) (cpu time.Duration) {
	found := r.candidates()
	if len(found) > mostUnstable {
		return 0
	}
	for _, c := range found {
		passed, ok := 0, true
		for i := 1; i <= repeats && ok; i++ {
			fmt.Fprintf(r.out, "...   repeating %s %s alone, %d of %d\n", short(c.pkg), c.run, i, repeats)
			again := newReport(r.out)
			again.short, again.job = r.short, c.job
			cpu += n.do(ctx, again, c.job, c.job.command(c.run, []string{target(c.job.folder, c.pkg)}, "-count=1"))
			again.end()
			ok, passed = again.failed == 0 && len(again.lost) == 0 && again.passed > 0, again.passed
		}
		if !ok {
			continue
		}
		file, err := c.keep(filepath.Join(n.root, "dist/unstable"))
		if err != nil {
			r.stray(err.Error())
		}
		r.forgive(c, passed, file)
	}
	return cpu
}
