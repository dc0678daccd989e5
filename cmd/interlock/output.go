package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Results go to standard output; everything else, which is errors, progress and messages while a
// command waits, goes to standard error. With -o json standard output has the server's answers as
// they came, one a line, also when an answer is a refusal.

// json reports whether -o json was given.
func (a *app) json() bool { return a.output == "json" }

// raw prints an answer of the server as one line.
func (a *app) raw(answer []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, answer); err != nil {
		return fmt.Errorf("the server's answer is no JSON: %w", err)
	}
	line.WriteByte('\n')
	return a.content(line.Bytes())
}

// content prints what other agents wrote, byte by byte. On a terminal the characters that
// could steer it, or hide or reorder text, are printed as \u escapes.
func (a *app) content(b []byte) error {
	if a.screen {
		b = []byte(escaped(string(b)))
	}
	_, err := a.out.Write(b)
	return err
}

// print writes a value of our own as one line of JSON.
func (a *app) print(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (a *app) say(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }

// sentence is an error as a person reads it: what is wrong, and the next step.
func (a *app) sentence(err error) string {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusalText(refusal)
	}
	if own, ok := errors.AsType[*exitError](err); ok && own.err == nil {
		return ""
	}
	if errors.Is(err, client.ErrUnreachable) && a.server.base != nil {
		if failed := a.server.handshake(a.server.GRPC, err); failed != nil {
			return clean(failed.Error())
		}
		return a.server.unreachable(a.server.GRPC, errors.New(reason(err))).Error()
	}
	return clean(err.Error())
}

// reason returns why there was no answer, without the words that each layer below has put around
// it.
func reason(err error) string {
	text := clean(err.Error())
	if _, after, ok := strings.Cut(text, `desc = "`); ok {
		text = strings.TrimRight(after, `"`)
	}
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return text
}

// refusalText is the server's message. Its advice is the next step, except where the request itself
// is wrong: then the message describes how it should be.
func refusalText(e *interlock.Error) string {
	text, next := clean(e.Message), clean(e.Advice.Message)
	if near := clean(strings.Join(e.Nearest, ", ")); near != "" && !strings.Contains(text, clean(e.Nearest[0])) {
		text += "; spelled alike: " + near
	}
	if e.Code == interlock.CodeForbidden { // the message has the next step
		return strings.ReplaceAll(text, "leave the header out", "leave --namespace out")
	}
	if own, ok := nextSteps[e.Code]; ok {
		if strings.Contains(text, own) {
			return text
		}
		return text + ": " + own
	}
	next = asFlags(next)
	next = strings.ReplaceAll(next, "under the same request id", "with the same --id")
	switch {
	case text == "" && next == "":
		return "refused: " + string(e.Code)
	case text == "":
		return next
	case next == "" || strings.Contains(text, next) || exitForCode(e.Code) == exitUsage:
		return text
	case e.Key != "" && strings.HasPrefix(next, clean(string(e.Key))), strings.HasPrefix(next, text):
		return next // it contains all of it
	}
	return text + ": " + next
}

// flagNames are the fields of HTTP requests that the server's advice names, as flags.
var flagNames = strings.NewReplacer(
	"ask again with on_conflict wait to stand in line", "use --wait 30s to stand in line",
	"with on_conflict wait", "with --wait 30s",
	"resume it with wait_ms", "resume it with --wait",
	"with a longer wait_ms", "with a longer --wait",
)

// asFlags returns the server's advice with flags instead of fields of HTTP requests.
func asFlags(advice string) string { return flagNames.Replace(advice) }

// nextSteps are for refusals with server advice that speaks of HTTP, or repeats the message.
var nextSteps = map[interlock.Code]string{
	interlock.CodeUnauthenticated: "set INTERLOCK_CREDENTIAL, or use --credential-file",
	interlock.CodeNoSpace:         "try again when there is room on the server's disk",
	interlock.CodeRevoked:         "write nothing more under it, and ask before you acquire again",
	interlock.CodeExpired:         "write nothing more under it",
	interlock.CodeTaken:           "write nothing more under it",
	interlock.CodeNoSuchPattern:   "`interlock pattern ls` lists the existing ones",
	interlock.CodeNoSuchRevision:  "`interlock pattern revisions` lists the remembered ones",
	interlock.CodeNoSuchQueue:     "`interlock queue ls` lists the existing ones, and `interlock queue set` makes one",
	interlock.CodeUnknownTask:     "`interlock task ls` lists the known ones",
	interlock.CodeTaskSettled:     "`interlock task show` has its history",
	interlock.CodeTaskMoved:       "drop what you have of it",
	interlock.CodeNoWriter:        "`interlock mailbox writer set` names one for the key's pattern",
	interlock.CodePreempted:       "write nothing more under it",
	interlock.CodeParked:          "resume it with `interlock resume`",
	interlock.CodeDenied:          "`interlock release` ends it, and `interlock resume --unapproved` continues with something else under it",
	interlock.CodeOutcomeUnknown:  "look before you ask again",
}

// A colour is that of a word in a table.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// tint paints text when colours are wanted.
func (a *app) tint(c colour, text string) string {
	if !a.paint || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// livenessColour returns the colour of a holder's liveness.
func livenessColour(liveness string) colour {
	switch liveness {
	case interlock.Live.String():
		return green
	case interlock.Suspect.String(), interlock.LiveSoft.String(), interlock.Offered.String(),
		interlock.LiveParked.String():
		return yellow
	case interlock.LiveGrace.String(), interlock.Closed.String():
		return red
	}
	return plain
}

// table aligns columns by their visible width. (text/tabwriter would count the bytes of a colour.)
type table struct {
	a    *app
	rows [][]cell
}

type cell struct {
	text   string
	colour colour
}

func (a *app) table(headings ...string) *table {
	t := &table{a: a}
	row := make([]cell, len(headings))
	for i, h := range headings {
		row[i] = cell{h, bold}
	}
	t.rows = append(t.rows, row)
	return t
}

// row takes strings and cells.
func (t *table) row(values ...any) {
	row := make([]cell, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case cell:
			row[i] = v
		case string:
			row[i] = cell{text: v}
		default:
			row[i] = cell{text: fmt.Sprint(v)}
		}
	}
	t.rows = append(t.rows, row)
}

// tableWidth is that of a table with text of any length in its last column.
const tableWidth = 100

// fit cuts the last column so that no line is wider.
func (t *table) fit(width int) {
	last := len(t.rows[0]) - 1
	for _, w := range t.widths()[:last] {
		width -= w + 2
	}
	for _, row := range t.rows[1:] {
		if last < len(row) {
			row[last].text = cut(row[last].text, max(width, 20))
		}
	}
}

func (t *table) write(w io.Writer) error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		gap := 0 // spaces are written only when something follows
		for i, c := range row {
			if c.text != "" {
				b.WriteString(strings.Repeat(" ", gap))
				gap = 0
				b.WriteString(t.a.tint(c.colour, c.text))
			}
			gap += widths[i] - utf8.RuneCountInString(c.text) + 2
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widths are those of the columns.
func (t *table) widths() (widths []int) {
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	return widths
}

// orDash returns s, or a dash for "", so that scripts can cut columns.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
