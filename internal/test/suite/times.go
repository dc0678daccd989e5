package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// history is the file of times that the repository keeps, and times what this checkout adds to it.
const (
	history = "internal/test/suite/times.csv"
	times   = "dist/times.csv"
)

// columns of both files. A row is one run of a suite.
var columns = []string{
	"date", "commit", "processors", "suite", "seconds", "cpu_seconds", "load", "passed", "failed", "unstable",
}

// commit returns the commit of the checkout, with a plus sign if files differ from it.
func commit(root string) string {
	cmd := exec.Command("git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// addTimes adds a row for each result to the times of this checkout.
func addTimes(root string, now time.Time, results []result) error {
	path := filepath.Join(root, times)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	_, err := os.Stat(path)
	f, opened := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if opened != nil {
		return opened
	}
	defer f.Close()
	w := csv.NewWriter(f)
	if errors.Is(err, fs.ErrNotExist) {
		_ = w.Write(columns)
	}
	at := commit(root)
	for _, r := range results {
		_ = w.Write([]string{
			now.UTC().Format(time.DateTime), at, strconv.Itoa(runtime.NumCPU()), r.suite.name,
			fmt.Sprintf("%.0f", r.record.Seconds), fmt.Sprintf("%.0f", r.record.CPU), fmt.Sprintf("%.1f", r.record.Load),
			strconv.Itoa(r.record.Passed), strconv.Itoa(r.record.Failed), strconv.Itoa(len(r.record.Unstable)),
		})
	}
	w.Flush()
	return w.Error()
}

// readTimes returns the rows of a file of times, without its head.
func readTimes(path string) ([][]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(bufio.NewReader(f)).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[1:], nil
}

// printTimes prints the seconds of each suite by commit, the newest last, of at most the given number of commits.
func printTimes(out io.Writer, root string, most int) error {
	var rows [][]string
	for _, name := range []string{history, times} {
		more, err := readTimes(filepath.Join(root, name))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, more...)
	}
	type run struct {
		commit, date string
		seconds      map[string]string
	}
	var runs []*run
	for _, row := range rows {
		i := slices.IndexFunc(runs, func(r *run) bool { return r.commit == row[1] })
		if i < 0 {
			i = len(runs)
			runs = append(runs, &run{commit: row[1], seconds: map[string]string{}})
		}
		r := runs[i]
		r.date = row[0]
		r.seconds[row[3]] = row[4] + "/" + row[5]
	}
	runs = runs[max(0, len(runs)-most):]
	if len(runs) == 0 {
		_, err := fmt.Fprintln(out, "no suite has been timed")
		return err
	}
	fmt.Fprintf(out, "%-12s", "seconds/cpu")
	for _, r := range runs {
		fmt.Fprintf(out, " %13s", r.commit)
	}
	fmt.Fprintln(out)
	for _, s := range table {
		fmt.Fprintf(out, "%-12s", s.name)
		for _, r := range runs {
			fmt.Fprintf(out, " %13s", cmp.Or(r.seconds[s.name], "-"))
		}
		fmt.Fprintln(out)
	}
	return nil
}

// printSlow prints the slowest tests of the suites' last runs.
func printSlow(out io.Writer, folder string, most int) error {
	type row struct {
		suite string
		testTime
	}
	var rows []row
	for _, s := range table {
		r, err := readRecord(folder, s.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, t := range r.Tests {
			rows = append(rows, row{s.name, t})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for _, r := range rows[:min(most, len(rows))] {
		fmt.Fprintf(out, "%8.1f s  %-10s %s %s\n", r.Seconds, r.suite, r.Package, r.Test)
	}
	return nil
}
