package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Report is all that was measured in one run of the program, and where.
type Report struct {
	Machine Machine  `json:"machine"`
	Command []string `json:"command"` // the arguments of the program
	Server  string   `json:"server"`  // which server was measured, and how durable it is
	Figures []Figure `json:"figures"`
}

// WriteJSON writes the report as one line of JSON.
func (r *Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteHead writes what stands above the tables.
func (r *Report) WriteHead(w io.Writer) error {
	m := r.Machine
	_, err := fmt.Fprintf(w, "%s, %d cores, %s, %s, commit %s\n%s\n%s\n", m.Processor, m.Cores, m.System, m.Go, m.Commit,
		strings.Join(r.Command, " "), r.Server)
	return err
}

// WriteTable writes the figures of one scenario: a row for each load and target, and in
// each cell the median and, where there were several runs, the least and the most of them.
func WriteTable(w io.Writer, s Scenario, figures []Figure) error {
	headings := []string{"LOAD", "TARGET"}
	var rows [][]string
	var at string // which case the last row is of
	for _, f := range figures {
		heading := strings.ToUpper(f.Name)
		if f.Unit != Plain && f.Unit != Index {
			heading += " " + string(f.Unit)
		}
		if !slices.Contains(headings, heading) {
			headings = append(headings, heading)
		}
		if c := f.Load + "\x00" + f.Target; c != at || len(rows) == 0 {
			rows = append(rows, []string{f.Load, f.Target})
			at = c
		}
		row := &rows[len(rows)-1]
		column := slices.Index(headings, heading)
		for len(*row) <= column {
			*row = append(*row, "")
		}
		(*row)[column] = cell(f)
	}
	if s.Tall {
		rows, headings = turned(rows, headings), nil
	}
	var widths []int
	for _, row := range append(rows, headings) {
		widths = append(widths, make([]int, max(len(row)-len(widths), 0))...)
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", s.Name)
	for _, line := range wrap(s.About, aboutWidth) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	b.WriteByte('\n')
	left := 2
	if s.Tall {
		left = 1
	} else {
		rows = slices.Insert(rows, 0, headings)
	}
	for _, row := range rows {
		line := ""
		for i, text := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if i < left {
				line += "  " + text + gap
			} else {
				line += "  " + gap + text
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// turned is a table with its columns as rows.
func turned(rows [][]string, headings []string) [][]string {
	columns := make([][]string, len(headings))
	for i, heading := range headings {
		columns[i] = append(columns[i], heading)
		for _, row := range rows {
			text := ""
			if i < len(row) {
				text = row[i]
			}
			columns[i] = append(columns[i], text)
		}
	}
	return columns
}

const aboutWidth = 98

// wrap breaks a text into lines.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// cell is a figure as people read it.
func cell(f Figure) string {
	text := Number(f.Median)
	if f.Runs > 1 {
		text += " (" + Number(f.Min) + "–" + Number(f.Max) + ")"
	}
	return text
}

// Number has three digits that count, or all before the point, in groups of three.
func Number(v float64) string {
	decimals := 0
	switch a := math.Abs(v); {
	case v == math.Trunc(v) || a >= 99.95:
	case a >= 9.995:
		decimals = 1
	case a >= 0.9995:
		decimals = 2
	default:
		decimals = 3
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}
