package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// reassure is how long the tool keeps quiet at most. A kill loop runs for
// minutes, and a silent build server looks like a dead one.
const reassure = 30 * time.Second

func main() {
	brief := flag.Bool("short", false, "the tests run with -short and may leave themselves out")
	file := flag.String("o", "", "also write the counts into this file, as JSON")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ... | suite [-short] [-o FILE] NAME")
		os.Exit(2)
	}
	r := newReport(os.Stdout)
	r.short, r.began = *brief, time.Now()
	ok := run(r, flag.Arg(0), os.Stdin, time.Tick(reassure))
	if *file != "" {
		if err := r.record(*file, flag.Arg(0)); err != nil {
			fmt.Fprintln(os.Stderr, "suite:", err)
			ok = false
		}
	}
	if !ok {
		os.Exit(1)
	}
}

// run reads events until in ends and reports whether the suite passed.
func run(r *report, name string, in io.Reader, quiet <-chan time.Time) bool {
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
