package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// The smallest terminal that frames are made for. A smaller one shows what fits of them.
const (
	leastWidth  = 40
	leastHeight = 8
)

// frame draws what is shown in exactly height lines of at most width cells.
func (m *model) frame(width, height int) []line {
	head := m.head(width)
	foot := m.foot(width)
	below := m.whyLines(width, max(height-len(head)-len(foot), 0)/2)
	room := max(height-len(head)-len(below)-len(foot), 0)
	var body []line
	if m.help {
		body = helpLines()
	} else {
		body = m.table(width, room)
	}
	body = body[:min(len(body), room)]
	for len(body) < room {
		body = append(body, nil)
	}
	return fitted(slices.Concat(head, body, below, foot), width, height)
}

// whole draws all rows of the view once, for output that is no terminal.
func (m *model) whole(width int) []line {
	return fitted(append(m.head(width), m.table(width, 1<<30)...), width, 1<<30)
}

func fitted(lines []line, width, height int) []line {
	lines = lines[:min(len(lines), height)]
	for i, l := range lines {
		lines[i] = l.fit(width)
	}
	return lines
}

// head is the sums, the verdict, and what is shown below.
func (m *model) head(width int) (lines []line) {
	if m.picture == nil {
		return []line{{cli.Coloured("interlock", cli.Bold), cli.Coloured("  "+clean(m.namespace), cli.Plain)}}
	}
	n := &m.picture.Sums
	sums := []string{
		clean(m.namespace), m.picture.ServerTime.Local().Format("15:04:05"), cli.Count(n.Waiters, "waiter", "waiters"),
		cli.Count(n.Leases, "lease", "leases"), cli.Count(n.Keys, "key", "keys"),
	}
	for _, c := range []struct {
		n         int
		one, many string
	}{
		{n.Approvals, "question", "questions"},
		{n.DeadLetters, "dead letter", "dead letters"},
		{n.Tasks, "task", "tasks"},
	} {
		if c.n > 0 {
			sums = append(sums, cli.Count(c.n, c.one, c.many))
		}
	}
	if entries, known := m.perSecond(); known {
		sums = append(sums, fmt.Sprintf("%d journal entries/s", entries))
	}
	sums = append(sums, cli.Count(n.Sessions, "session", "sessions"))
	lines = append(lines, line{
		cli.Coloured("interlock", cli.Bold), cli.Coloured("  "+strings.Join(sums, "  "), cli.Plain),
	})

	colour := cli.Green
	switch {
	case len(m.picture.Cycles) > 0:
		colour = cli.Red
	case n.Waiters > 0 || n.DeadLetters > 0 || n.Approvals > 0:
		colour = cli.Yellow
	}
	verdict := wrap(clean(m.picture.Verdict), width)
	if len(verdict) > 2 {
		verdict = append(verdict[:1], strings.Join(verdict[1:], " "))
	}
	for _, text := range verdict {
		lines = append(lines, line{cli.Coloured(text, colour)})
	}

	tabs := line{}
	for i, v := range views {
		text := fmt.Sprintf("%d %s", i+1, v)
		if v == m.view {
			tabs = append(tabs, cli.Coloured("["+text+"]", cli.Bold))
		} else {
			tabs = append(tabs, cli.Coloured(" "+text+" ", cli.Dim))
		}
	}
	if m.view == viewKeys {
		tabs = append(tabs, cli.Coloured("  by "+m.order, cli.Plain))
	}
	if m.filter != "" && m.typing != theFilter {
		tabs = append(tabs, cli.Coloured("  only "+clean(m.filter), cli.Yellow))
	}
	return append(lines, tabs)
}

// table is the rows that have room, with the selected one among them.
func (m *model) table(width, room int) []line {
	if m.picture == nil || room < 1 {
		return nil
	}
	rows := m.rows()
	if len(rows) == 0 {
		return []line{{cli.Coloured(m.empty(), cli.Dim)}}
	}
	m.settle(rows)
	unseen := 0 // that the picture leaves out
	if m.view == viewKeys && m.filter == "" {
		unseen = m.picture.MoreKeys
	}
	m.page = max(room-2, 1) // a heading, and a line about the rest
	if len(rows) <= room-1 && unseen == 0 {
		m.page = room - 1
	}
	m.first = min(max(m.first, m.at-m.page+1), m.at, max(len(rows)-m.page, 0))
	m.first = max(m.first, 0)
	shown := rows[m.first:min(m.first+m.page, len(rows))]

	const mark = 2 // cells for the mark of the selected row
	columns := columnsOf(m.view)
	contents := make([][]cli.Cell, len(shown))
	for i := range shown {
		contents[i] = shown[i].cells
	}
	widths := layout(columns, contents, width-mark)
	titles := make([]cli.Cell, len(columns))
	for i, c := range columns {
		titles[i] = cli.Coloured(c.title, cli.Bold)
	}
	lines := []line{append(line{{Text: "  "}}, tableLine(columns, widths, titles)...)}
	for i := range shown {
		l := tableLine(columns, widths, shown[i].cells)
		if m.first+i == m.at && m.chosen != "" {
			text := cut(l.plain(), width-mark)
			l = line{cli.Coloured("> "+pad(text, width-mark), cli.Reverse)}
		} else {
			l = append(line{{Text: "  "}}, l...)
		}
		lines = append(lines, l)
	}
	if more := len(rows) - len(shown) + unseen; more > 0 {
		lines = append(lines, line{cli.Coloured(fmt.Sprintf("  and %d more", more), cli.Dim)})
	}
	return lines
}

func (m *model) empty() string {
	switch {
	case m.filter != "":
		return "  nothing has " + cli.Quote(clean(m.filter))
	case m.view == viewWaits:
		return "  no agent waits"
	case m.view == viewAgents:
		return "  no agent holds or waits"
	case m.view == viewTrouble:
		return "  no deadlock, lost lease, revocation or failed attempt in the last hour"
	}
	return "  no key is held or waited for"
}

// whyLines are the answer about a key, in at most most lines.
func (m *model) whyLines(width, most int) (lines []line) {
	if m.whyOf == "" || most < 2 {
		return nil
	}
	rule := "── why " + clean(m.whyOf) + " "
	lines = append(lines, line{cli.Coloured(cut(rule, width)+strings.Repeat("─", max(width-cells(rule), 0)), cli.Dim)})
	if m.why == nil {
		return append(lines, line{{Text: "asking…"}})
	}
	for _, text := range wrap(cli.AsFlags(clean(m.why.Text)), width) {
		lines = append(lines, line{{Text: text}})
	}
	if next := clean(cli.Next(&m.why.Advice)); next != "" {
		for i, text := range wrap("Next: "+next, width) {
			l := line{{Text: text}}
			if rest, ok := strings.CutPrefix(text, "Next:"); ok && i == 0 {
				l = line{cli.Coloured("Next:", cli.Bold), {Text: rest}}
			}
			lines = append(lines, l)
		}
	}
	return lines[:min(len(lines), most)]
}

// foot is the line of questions, outcomes and keys.
func (m *model) foot(width int) []line {
	var l line
	switch {
	case m.typing == theFilter:
		l = typed("filter: ", m.filter, "  Enter keeps it, Esc clears it")
	case m.typing == theAnswer:
		return m.question(width)
	case m.typing == theReason:
		l = typed("reason: ", m.text, "  Enter revokes, Esc does not")
	case m.said != "":
		l = line{cli.Coloured(m.said, cli.Yellow)}
	case m.stale != "":
		l = line{cli.Coloured(m.stale, cli.Red)}
	case m.picture == nil:
		l = line{{Text: "connecting…"}}
	default:
		l = line{cli.Coloured("q quit  ? help  / filter  Enter why  w waits  a agents  t trouble  x revoke", cli.Dim)}
	}
	return []line{l}
}

// typed is a text while it is typed.
func typed(name, text, hint string) line {
	return line{cli.Coloured(name, cli.Bold), {Text: clean(text) + "▏"}, cli.Coloured(hint, cli.Dim)}
}

// question is what a revocation will do.
func (m *model) question(width int) (lines []line) {
	h := m.meant
	text := fmt.Sprintf(
		"%s is held by %s. Revoke the lease with fence %s? Its later writes are refused, and what it has not written "+
			"yet is lost.",
		clean(string(h.Key)), clean(cli.HolderText(h)), h.Fence,
	)
	if m.queue > 0 {
		text += fmt.Sprintf(" The key passes on to the first of %s.", cli.Count(m.queue, "waiter", "waiters"))
	}
	for _, t := range wrap(text+" [y/N]", width) {
		lines = append(lines, line{cli.Coloured(t, cli.Bold)})
	}
	return lines
}

func helpLines() (lines []line) {
	for _, k := range [][2]string{
		{"1 keys", "keys; s sorts: time lost, waiters, oldest wait, time held, name"},
		{"2 w", "waits as a tree, root blockers first"},
		{"3 a", "agents: what each holds, waits for and blocks"},
		{"4 t", "deadlocks, lost leases and other trouble of the last hour"},
		{"", ""},
		{"j k, arrows", "select a row; g and G, Home and End: the first and the last"},
		{"Enter", "why: the explanation of the selected key; Esc closes it"},
		{"/", "show only rows with a text; Esc clears it"},
		{"x", "revoke the lease at the key: asks first, and for a reason"},
		{"q, Ctrl-C", "quit"},
	} {
		lines = append(lines, line{cli.Coloured("  "+pad(k[0], 13), cli.Bold), {Text: k[1]}})
	}
	return lines
}

// explained takes the answer to a request.
func (m *model) explained(key string, why *api.Why) {
	if m.whyOf == key {
		m.why = why
	}
}
