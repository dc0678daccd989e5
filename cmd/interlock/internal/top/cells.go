package top

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/invisible"
)

// A line is drawn from left to right.
type line []cli.Cell

// plain is the line without colours.
func (l line) plain() string {
	var b strings.Builder
	for _, c := range l {
		b.WriteString(c.Text)
	}
	return b.String()
}

// fit cuts the line to a width in cells.
func (l line) fit(most int) line {
	var fitted line
	for _, c := range l {
		cut := cut(c.Text, most)
		fitted = append(fitted, cli.Coloured(cut, c.Colour))
		if most -= cells(cut); cut != c.Text {
			break
		}
	}
	return fitted
}

// clean makes text of agents one line. A variation selector goes, because terminals disagree about the width of the
// character before it.
func clean(s string) string {
	return strings.ReplaceAll(cli.Clean(s), string(invisible.EmojiStyle), "")
}

// cells is how many cells of a terminal a text takes.
func cells(s string) (n int) {
	for _, r := range s {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me), 0x1160 <= r && r <= 0x11ff: // marks, and later parts of a Hangul syllable
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut leaves of a text what fits into a number of cells, and shows where it did.
func cut(s string, most int) string {
	if cells(s) <= most {
		return s
	}
	if most <= 0 {
		return ""
	}
	used := 0
	for i, r := range s {
		if used += cellsOf(r); used > most-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// pad fills a text up to a number of cells.
func pad(s string, to int) string { return s + strings.Repeat(" ", max(0, to-cells(s))) }

// wrap breaks a text into lines of at most most cells, between words where it can.
func wrap(s string, most int) (lines []string) {
	most = max(most, 1)
	current := ""
	for word := range strings.FieldsSeq(s) {
		for {
			joined := word
			if current != "" {
				joined = current + " " + word
			}
			if cells(joined) <= most {
				current = joined
				break
			}
			if current != "" {
				lines, current = append(lines, current), ""
				continue
			}
			used, end := 0, len(word)
			for i, r := range word {
				if used += cellsOf(r); used > most && i > 0 {
					end = i
					break
				}
			}
			lines, word = append(lines, word[:end]), word[end:]
			if word == "" {
				break
			}
		}
	}
	if current != "" {
		lines = append(lines, current)
	}
	return lines
}

// A column of a table.
type column struct {
	title string
	least int  // cells that it can be cut to; 0: it is never cut
	spare bool // it is left out where there is no room
	right bool
}

const gap = 2 // cells between columns

// layout returns the widths of the columns, -1 for those that are left out, of a table with these cells.
func layout(columns []column, rows [][]cli.Cell, most int) []int {
	whole := make([]int, len(columns))
	for i, c := range columns {
		whole[i] = cells(c.title)
		for _, row := range rows {
			whole[i] = max(whole[i], cells(row[i].Text))
		}
	}
	for {
		widths, fits := shrink(columns, whole, most)
		spare := -1
		for i, c := range columns {
			if c.spare && whole[i] >= 0 {
				spare = i
			}
		}
		if fits || spare < 0 {
			return widths
		}
		whole[spare] = -1
	}
}

// shrink cuts columns, the widest first, until the table fits.
func shrink(columns []column, whole []int, most int) (widths []int, fits bool) {
	widths = slices.Clone(whole)
	for {
		over, widest := -gap-most, -1
		for i, w := range widths {
			if w < 0 {
				continue
			}
			over += w + gap
			if c := &columns[i]; c.least > 0 && w > max(c.least, cells(c.title)) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if over <= 0 || widest < 0 {
			return widths, over <= 0
		}
		widths[widest]--
	}
}

// tableLine is a row of a table.
func tableLine(columns []column, widths []int, row []cli.Cell) (l line) {
	space := ""
	for i, w := range widths {
		if w < 0 {
			continue
		}
		text := cut(row[i].Text, w)
		if fill := strings.Repeat(" ", w-cells(text)); columns[i].right {
			l = append(l, cli.Coloured(space+fill, cli.Plain), cli.Coloured(text, row[i].Colour))
			space = strings.Repeat(" ", gap)
		} else {
			l = append(l, cli.Coloured(space, cli.Plain), cli.Coloured(text, row[i].Colour))
			space = fill + strings.Repeat(" ", gap)
		}
	}
	return l
}
