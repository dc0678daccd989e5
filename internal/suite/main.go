package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"
)

// reassure is how long the tool keeps quiet at most. A kill loop runs for
// minutes, and a silent build server looks like a dead one.
const reassure = 30 * time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ... | suite NAME")
		os.Exit(2)
	}
	if !run(os.Args[1], os.Stdin, os.Stdout, time.Tick(reassure)) {
		os.Exit(1)
	}
}

// run reads events until in ends and reports whether the suite passed.
func run(name string, in io.Reader, out io.Writer, quiet <-chan time.Time) bool {
	lines := make(chan []byte)
	failed := make(chan error, 1)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			lines <- append([]byte(nil), s.Bytes()...)
		}
		failed <- s.Err()
	}()

	r := newReport(out)
	for {
		select {
		case line, more := <-lines:
			if !more {
				if err := <-failed; err != nil {
					r.stray("cannot read the test output: " + err.Error())
				}
				return r.finish(name)
			}
			r.add(line)
		case <-quiet:
			r.stillRunning(time.Now())
		}
	}
}
