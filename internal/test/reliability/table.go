package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The table stands between these lines.
const (
	begin = "<!-- begin: written by make reliability from reliability.json -->\n"
	end   = "<!-- end -->\n"
)

// table returns the table of docs/guarantees.md about the record. If none of n trials failed,
// the rate of failures is below 3/n with a confidence of 95 %: (1-3/n)^n is about 0.05.
func (r *record) table() string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "Measured on %s at commit `%.12s`, on %s/%s with %d processors and %s.\n\n", r.Date, r.Commit, r.Machine.OS,
		r.Machine.Arch, r.Machine.CPUs, r.Machine.Go,
	)
	b.WriteString("| what was tried | how many | violations | so, at 95 %, at most |\n|---|---:|---:|---|\n")
	row := func(what string, n int64, unit string) {
		fmt.Fprintf(&b, "| %s | %s | 0 | %s |\n", what, grouped(n), bound(n, unit))
	}
	row("simulated worlds with faults, one a seed", r.Seeds, "worlds")
	row("commands in them", r.Commands, "commands")
	row("recoveries from crashes, in them and of real servers", r.Recoveries, "recoveries")
	row("states of the disk after a crash", r.CrashStates, "states")
	row("journals with a changed byte", r.ByteFlips, "journals")
	row("operations of real processes under faults", r.Operations, "operations")
	row("attacks", r.Security, "")
	b.WriteString("\n" + filled(fmt.Sprintf("The worlds lived for %g simulated hours; the outcome of %s of their "+
		"commands stayed unknown to the clients. The operations of real processes were checked in %s histories; the "+
		"outcome of %s operations stayed unknown. The checks count an unknown outcome as one that may have happened. Of "+
		"%d deliberate mistakes, put in one at a time at commit `%.12s`, the same checks found %d within a minute each "+
		"(`make seeded`).", r.SimulatedHours, grouped(r.WorldUnknowns), grouped(r.Histories), grouped(r.HistoryUnknowns),
		r.SeededBugs.Total, r.SeededBugs.Commit, r.SeededBugs.Found)) + "\n")
	if n := r.Night; n != nil {
		b.WriteString(filled(fmt.Sprintf("Nights (`make night`) went beyond that for %.1f hours in %s rounds, the last "+
			"on %s at commit `%.12s`: %s further worlds with %s commands, %s states of the disk and %s operations of real "+
			"processes, without a violation.", n.Seconds/3600, grouped(n.Rounds), n.Date, n.Commit, grouped(n.Counts["seeds"]),
			grouped(n.Counts["commands"]), grouped(n.Counts["crash_states"]), grouped(n.Counts["history_operations"]))) + "\n")
	}
	var faults []string
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		faults = append(faults, strings.ReplaceAll(kind, "_", " ")+" "+grouped(r.Faults[kind]))
	}
	b.WriteString(filled("Faults, by kind: " + strings.Join(faults, ", ") + "."))
	return b.String()
}

// filled breaks a paragraph into lines of at most 120 characters.
func filled(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > 120:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteString("\n")
	return b.String()
}

// bound returns what n trials without a failure show.
func bound(n int64, unit string) string {
	switch {
	case unit == "":
		return "(a list, not a sample)"
	case n < 3:
		return "nothing"
	}
	return "1 in " + grouped(n/3) + " " + unit
}

// grouped writes a number as people read it: 2,075,424.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// split cuts a document into what stands before, in and behind the table.
func split(doc []byte) (before, table, after []byte, err error) {
	before, rest, ok := bytes.Cut(doc, []byte(begin))
	if ok {
		if table, after, ok = bytes.Cut(rest, []byte(end)); ok {
			return before, table, after, nil
		}
	}
	return nil, nil, nil, fmt.Errorf("there is no table between the lines %q and %q", begin, end)
}

// write puts the table into a document.
func (r *record) write(path string) error {
	doc, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, _, after, err := split(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, slices.Concat(before, []byte(begin+r.table()+end), after), 0o666)
}
