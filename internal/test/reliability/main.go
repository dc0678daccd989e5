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
	flag.Parse()
	if err := run(*out, *doc, *mistakes, flag.Args()); err != nil {
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
	commit, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("the commit cannot be told: %w", err)
	}
	r.Commit, r.Date, r.Machine = strings.TrimSpace(string(commit)), time.Now().UTC().Format(time.DateOnly), here()
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
