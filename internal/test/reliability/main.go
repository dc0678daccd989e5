package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

func main() {
	out := flag.String("o", "reliability.json", "write the record into this file")
	doc := flag.String("doc", "docs/guarantees.md", "write the table into this document")
	mistakes := flag.String(
		"seeded", "sim/seeded/last-run.json", "take the deliberate mistakes from this file, which make seeded writes",
	)
	round := flag.Bool("night", false, "add the records of suites to those of nights, as one round")
	check := flag.Bool("check", false, "fail if a record is old, or of a commit that is not part of the history")
	flag.Parse()
	var err error
	switch {
	case *check:
		err = age(os.Stdout, *out, *mistakes)
	case *round:
		err = addRound(*out, *doc, flag.Args())
	default:
		err = run(*out, *doc, *mistakes, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reliability:", err)
		os.Exit(1)
	}
}

func run(out, doc, mistakes string, suites []string) error {
	r, err := gather(suites)
	if err != nil {
		return err
	}
	if r.SeededBugs, err = readSeeded(mistakes); err != nil {
		return err
	}
	if r.Commit, err = head(); err != nil {
		return err
	}
	r.Date, r.Machine = time.Now().UTC().Format(time.DateOnly), here()
	if before, err := read(out); err == nil {
		r.Night = before.Night
	}
	return r.publish(out, doc)
}

// addRound adds a round of a night, from the records of its suites.
func addRound(out, doc string, paths []string) error {
	r, err := read(out)
	if err != nil {
		return err
	}
	if r.Night == nil {
		r.Night = &night{}
	}
	var suites []suite
	for _, path := range paths {
		s, err := readSuite(path)
		if err != nil {
			return err
		}
		suites = append(suites, s)
	}
	commit, err := head()
	if err != nil {
		return err
	}
	if err := r.Night.add(suites, commit, time.Now().UTC().Format(time.DateOnly)); err != nil {
		return err
	}
	return r.publish(out, doc)
}

func head() (string, error) {
	commit, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("the commit cannot be told: %w", err)
	}
	return strings.TrimSpace(string(commit)), nil
}

func read(path string) (*record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &record{}
	return r, json.Unmarshal(b, r)
}

// publish writes the record, and the table of the document.
func (r *record) publish(out, doc string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, append(b, '\n'), 0o666); err != nil {
		return err
	}
	if err := r.write(doc); err != nil {
		return err
	}
	fmt.Print(r.table())
	return nil
}

// here returns a description of this machine, for comparisons of figures.
func here() machine {
	m := machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel, _, _ = strings.Cut(strings.TrimSpace(string(b)), "-")
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(b), "model name\t: ")
		m.CPU, _, _ = strings.Cut(rest, "\n")
	}
	return m
}
