package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/sim/seeded"
)

func main() {
	run := flag.String("run", "", "try only mistakes whose names this regular expression finds")
	format := flag.String("o", "text", "text or json")
	limit := flag.Duration("limit", time.Minute, "how long finders look for each mistake")
	clean := flag.Bool("clean", true, "also have the finders look at the tree without a mistake")
	record := flag.String("record", "", "write results into this file as they come, and go on with the run that it has")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	report, err := try(ctx, *run, *limit, *clean, *format, *record)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interlock-seeded:", err)
		os.Exit(2)
	}
	if !report.Good() {
		os.Exit(1)
	}
}

func try(
	ctx context.Context, run string, limit time.Duration, clean bool, format, record string,
) (*seeded.Report, error) {
	wanted, err := regexp.Compile(run)
	if err != nil {
		return nil, err
	}
	if format != "text" && format != "json" {
		return nil, fmt.Errorf("-o %s: want text or json", format)
	}
	bugs, err := seeded.Bugs()
	if err != nil {
		return nil, err
	}
	bugs = slices.DeleteFunc(bugs, func(b seeded.Bug) bool { return !wanted.MatchString(b.Name) })
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the module: %w", err)
	}
	temp, err := os.MkdirTemp("", "interlock-seeded-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	var lines io.Writer = os.Stdout
	if format == "json" {
		lines = os.Stderr
	}
	r := &seeded.Runner{Root: strings.TrimSpace(string(root)), Limit: limit, Temp: temp}
	report := seeded.NewReport(r)
	if record != "" {
		if err := report.Resume(record); err != nil {
			return nil, err
		}
		if run == "" { // a pattern asks for those that were tried before, too
			bugs = slices.DeleteFunc(bugs, func(b seeded.Bug) bool { return report.Has(b.Name) })
		}
	}
	if clean {
		for _, f := range seeded.Finders(bugs) {
			if report.Passed(f) {
				continue
			}
			p := r.Clean(ctx, f)
			report.AddPass(p)
			fmt.Fprintln(lines, p.Line())
			if err := report.Write(record); err != nil {
				return nil, err
			}
		}
	}
	for i := range bugs {
		x := r.Try(ctx, &bugs[i])
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		report.Add(x)
		fmt.Fprintln(lines, x.Line())
		if err := report.Write(record); err != nil {
			return nil, err
		}
	}
	fmt.Fprintln(lines, report.Summary())
	if format == "json" {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return report, out.Encode(report)
	}
	return report, nil
}
