package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
)

// overbooked is how much more load runs side by side than there are processors: suites wait a part of their time, and
// a processor that idles is lost.
const overbooked = 1.5

// runAll runs suites in their order, side by side as far as processors are free. After a suite that failed no other one
// begins, unless GO_ON asks for all failures.
func (n *runner) runAll(ctx context.Context, suites []*suite, out io.Writer) (results []result) {
	free := overbooked * float64(runtime.NumCPU())
	var mu sync.Mutex
	ended := make(chan result)
	var running []*suite
	failed := false
	start := func(s *suite) {
		running = append(running, s)
		free -= s.load
		lines := &lineWriter{mu: &mu, out: out}
		if len(suites) > 1 {
			lines.prefix = fmt.Sprintf("%-10s ", s.name)
		}
		go func() { ended <- n.run(ctx, s, lines) }()
	}
	waiting := append([]*suite(nil), suites...)
	for len(running) > 0 || len(waiting) > 0 && !failed {
		next := slices.IndexFunc(waiting, func(s *suite) bool {
			beside := !slices.ContainsFunc(running, func(r *suite) bool { return !r.bears(s) })
			return len(running) == 0 || beside && s.load <= free
		})
		if next >= 0 && !failed {
			s := waiting[next]
			waiting = append(waiting[:next], waiting[next+1:]...)
			start(s)
			continue
		}
		r := <-ended
		running = slices.DeleteFunc(running, func(s *suite) bool { return s == r.suite })
		free += r.suite.load
		results = append(results, r)
		failed = failed || !r.passed && setting("GO_ON", "") == ""
	}
	return results
}

// lineWriter writes whole lines, each with the name of its suite, so that suites that run side by side stay readable.
type lineWriter struct {
	mu     *sync.Mutex
	out    io.Writer
	prefix string
	rest   []byte
}

func (p *lineWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		if _, err := fmt.Fprintf(p.out, "%s%s", p.prefix, p.rest[:i+1]); err != nil {
			return 0, err
		}
		p.rest = p.rest[i+1:]
	}
}
