package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// Colour is the colour of a text, as a terminal names it.
type Colour string

// The colours of texts.
const (
	Plain Colour = ""
	Bold  Colour = "1"
	Dim   Colour = "2"
	// Reverse swaps the colours of the text and the ground.
	Reverse Colour = "7"
	Red     Colour = "31"
	Green   Colour = "32"
	Yellow  Colour = "33"
)

// Tint paints text when colours are wanted.
func (a *App) Tint(c Colour, text string) string {
	if !a.paint || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// LivenessColour returns the colour of a holder's liveness.
func LivenessColour(liveness string) Colour {
	switch liveness {
	case interlock.Live.String():
		return Green
	case interlock.Suspect.String(), interlock.LiveSoft.String(), interlock.Offered.String(),
		interlock.LiveParked.String():
		return Yellow
	case interlock.LiveGrace.String(), interlock.Closed.String():
		return Red
	}
	return Plain
}

// LivenessCell is a holder's liveness in its colour.
func LivenessCell(liveness string) Cell { return Coloured(Clean(liveness), LivenessColour(liveness)) }

// Table aligns columns by their visible width. (text/tabwriter would count the bytes of a colour.)
type Table struct {
	a    *App
	rows [][]Cell
}

// Cell is a text in a table, with a colour.
type Cell struct {
	Text   string
	Colour Colour
}

// Coloured is a cell with a colour.
func Coloured(text string, c Colour) Cell { return Cell{text, c} }

// Table returns a table with these headings.
func (a *App) Table(headings ...string) *Table {
	t := &Table{a: a}
	row := make([]Cell, len(headings))
	for i, h := range headings {
		row[i] = Coloured(h, Bold)
	}
	t.rows = append(t.rows, row)
	return t
}

// Row takes strings and cells.
func (t *Table) Row(values ...any) {
	row := make([]Cell, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case Cell:
			row[i] = v
		case string:
			row[i] = Cell{Text: v}
		default:
			row[i] = Cell{Text: fmt.Sprint(v)}
		}
	}
	t.rows = append(t.rows, row)
}

// TableWidth is that of a table with text of any length in its last column.
const TableWidth = 100

// Fit cuts the last column so that no line is wider.
func (t *Table) Fit(width int) {
	last := len(t.rows[0]) - 1
	for _, w := range t.widths()[:last] {
		width -= w + 2
	}
	for _, row := range t.rows[1:] {
		if last < len(row) {
			row[last].Text = Cut(row[last].Text, max(width, 20))
		}
	}
}

func (t *Table) Write(w io.Writer) error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		gap := 0 // spaces are written only when something follows
		for i, c := range row {
			if c.Text != "" {
				b.WriteString(strings.Repeat(" ", gap))
				gap = 0
				b.WriteString(t.a.Tint(c.Colour, c.Text))
			}
			gap += widths[i] - utf8.RuneCountInString(c.Text) + 2
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widths are those of the columns.
func (t *Table) widths() (widths []int) {
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	return widths
}
