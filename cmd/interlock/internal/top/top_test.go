package top

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/invisible"
)

var update = flag.Bool("update", false, "write the frames in testdata anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// scene is a picture with a deadlock, wide and combining characters, and text that would steer a terminal.
func scene(t *testing.T) *api.Overview {
	t.Helper()
	raw, err := os.ReadFile("testdata/picture.json")
	if err != nil {
		t.Fatal(err)
	}
	var o api.Overview
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		t.Fatal(err)
	}
	return &o
}

func newScene(t *testing.T) *model {
	m := &model{namespace: "acme", view: viewKeys, order: byLost}
	m.see(scene(t))
	m.events = []view.Event{
		{
			Event: "ended", Reason: "deadlock", Index: 1040, Agent: "docs-2",
			Time:   m.picture.ServerTime.Add(-90 * time.Second),
			Claims: []api.Claim{{Key: "docs:guide"}, {Key: "docs:index"}},
		},
		{
			Event: "ended", Reason: "revoked", Index: 900, Agent: "請求係", Fence: 11, Outcome: "stuck \x1b[2Jsince noon",
			Time: m.picture.ServerTime.Add(-time.Hour), Claims: []api.Claim{{Key: "account:12345"}},
		},
	}
	return m
}

func (m *model) presses(keys ...string) (last request) {
	for _, key := range keys {
		last = m.press(key)
	}
	return last
}

func text(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l.plain(), " ") + "\n")
	}
	return b.String()
}

// Frames are as in testdata, and no line is wider than the terminal, whatever agents write.
func TestFrames(t *testing.T) {
	why := &api.Why{
		Text: "account:12345 is held by \"billing-7\" (live, \"apply late fee\") for 130 s. 3 waiters are in line.",
		Advice: api.Advice{
			Message: "wait in line for it, or work on something else",
		},
	}
	for _, c := range []struct {
		name          string
		width, height int
		do            func(*model)
	}{
		{"keys_80", 80, 24, func(*model) {}},
		{"keys_60", 60, 12, func(m *model) { m.presses("j", "j", "j") }},
		{"keys_140", 140, 14, func(m *model) { m.presses("G") }},
		{"waits_80", 80, 20, func(m *model) { m.presses("w") }},
		{"agents_100", 100, 20, func(m *model) { m.presses("a", "j") }},
		{"trouble_80", 80, 12, func(m *model) { m.presses("t") }},
		{"filter_80", 80, 12, func(m *model) { m.presses("/", "B", "i", "l", "l") }},
		{"why_80", 80, 20, func(m *model) {
			m.presses(keyEnter)
			m.explained("account:12345", why)
		}},
		{"revoke_80", 80, 16, func(m *model) { m.presses("j", "x") }},
		{"help_80", 80, 20, func(m *model) { m.presses("?") }},
		{"stale_80", 80, 10, func(m *model) { m.stale = "the connection ended, connecting again" }},
		{"tiny_40", 40, 8, func(*model) {}},
	} {
		m := newScene(t)
		c.do(m)
		lines := m.frame(c.width, c.height)
		got := text(lines)
		if len(lines) != c.height {
			t.Errorf("%s has %d lines, want %d", c.name, len(lines), c.height)
		}
		for _, l := range lines {
			if n := cells(l.plain()); n > c.width {
				t.Errorf("%s: a line of %d cells: %s", c.name, n, l.plain())
			}
			for _, r := range l.plain() {
				if invisible.Is(r) {
					t.Errorf("%s has %q: %q", c.name, r, l.plain())
				}
			}
		}
		golden(t, c.name, got)
	}
	golden(t, "printed_100", text(newScene(t).whole(100)))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: go test ./cmd/interlock/internal/top -update writes it anew\n%s\nwant\n%s", name, got, want)
	}
}

// In frames of every size the lines fit, and the question and the keys are never cut away.
func TestFramesOfAllSizes(t *testing.T) {
	for _, v := range views {
		for width := leastWidth; width < 130; width += 7 {
			for height := leastHeight; height < 40; height += 3 {
				m := newScene(t)
				m.show(v)
				m.presses("j", keyEnter)
				lines := m.frame(width, height)
				if len(lines) != height || len(lines[height-1]) == 0 {
					t.Fatalf("%s, %d x %d: %d lines:\n%s", v, width, height, len(lines), text(lines))
				}
				for _, l := range lines {
					if n := cells(l.plain()); n > width {
						t.Fatalf("%s, %d x %d: a line of %d cells: %s", v, width, height, n, l.plain())
					}
				}
			}
		}
	}
}

func keysShown(m *model) (list []string) {
	for _, r := range m.rows() {
		list = append(list, r.key)
	}
	return list
}

// s changes the order of the keys.
func TestOrders(t *testing.T) {
	m := newScene(t)
	for _, want := range []struct{ order, first string }{
		{byWaiting, "account:12345"},
		{byOldest, "account:12345"},
		{byHeld, "帳簿:二千二十六年十一月分の締め処理"},
		{byKey, "account:12345"},
		{byLost, "account:12345"},
	} {
		m.press("s")
		if got := keysShown(m); m.order != want.order || got[0] != want.first || len(got) != 6 {
			t.Errorf("by %s, want %s: %q", m.order, want.order, got)
		}
	}
	m.order = byKey
	if got := keysShown(m); !slices.IsSorted(got) {
		t.Errorf("by key: %q", got)
	}
}

// The selected row is the same key when the order changes, and the next one when it is gone.
func TestSelectionFollowsTheKey(t *testing.T) {
	m := newScene(t)
	m.presses("j", "j")
	if m.selected().key != "repo:web/src/auth/login/session-cookie-parser.ts" {
		t.Fatalf("j j selects %s", m.selected().key)
	}
	o := scene(t)
	slices.Reverse(o.Keys)
	m.see(o)
	if m.selected().key != "repo:web/src/auth/login/session-cookie-parser.ts" || m.at != 4 {
		t.Errorf("in another order %s is selected, row %d", m.selected().key, m.at)
	}
	o = scene(t)
	o.Keys = o.Keys[:3]
	o.Keys = slices.Delete(o.Keys, 1, 2)
	m.see(o)
	if m.selected() == nil || m.selected().key == "" {
		t.Error("nothing is selected when the key is gone")
	}
	o.Keys = nil
	m.see(o)
	if m.selected() != nil || m.presses(keyEnter, "j", "x").kind != nothing {
		t.Error("without keys something is selected")
	}
}

// Every row of a tree with agents of one name can be reached.
func TestRowsOfOneName(t *testing.T) {
	m := newScene(t)
	o := scene(t)
	o.Nodes = []api.Party{{}, {}, {Name: api.Name{Agent: "holder"}}}
	two := 2
	o.Edges = []api.OverviewEdge{
		{From: 0, To: &two, Key: "k", Mode: "exclusive", Waited: 2},
		{From: 1, To: &two, Key: "k", Mode: "exclusive", Waited: 1},
	}
	o.Cycles = nil
	m.see(o)
	m.presses("w", "j", "j", "j")
	if rows := m.rows(); len(rows) != 3 || m.selected().id != rows[2].id {
		t.Errorf("row %d of %d is selected", m.at, len(rows))
	}
}

// A declared wait has no key: the agent that it is for stands instead, also for the filter.
func TestDeclaredWait(t *testing.T) {
	m := newScene(t)
	o := scene(t)
	o.Nodes = []api.Party{{Name: api.Name{Agent: "asker"}}, {Name: api.Name{Agent: "auditor"}}}
	one := 1
	o.Edges, o.Cycles = []api.OverviewEdge{{From: 0, To: &one, Waited: 2}}, nil
	m.see(o)
	m.presses("a")
	row := m.rows()[0]
	if cell := row.cells[3].Text; cell != "auditor" || !strings.Contains(row.text, "auditor") {
		t.Errorf("the agent waits for %q, in the row %q", cell, row.text)
	}
}

// The filter is about keys, agents and purposes; Esc clears it.
func TestFilter(t *testing.T) {
	for filter, want := range map[string]string{
		"ACCOUNT": "[account:12345]", "late fee": "[account:12345]", "請求": "[帳簿:二千二十六年十一月分の締め処理]",
		"a-2": "[api:openai]", "no such": "[]",
	} {
		m := newScene(t)
		m.press("/")
		for _, r := range filter {
			m.press(string(r))
		}
		if got := fmt.Sprint(keysShown(m)); got != want {
			t.Errorf("%s shows %s, want %s", filter, got, want)
		}
		m.presses(keyEnter, keyEscape)
		if len(m.rows()) != 6 {
			t.Errorf("Esc leaves %d rows", len(m.rows()))
		}
	}
	m := newScene(t)
	m.presses("/", "é", "x", keyBackspace, keyBackspace, "q", keyInterrupt)
	if m.filter != "q" {
		t.Errorf("the filter is %q", m.filter)
	}
}

// Nothing is revoked without a yes and a reason that is sent, and the fence is the one that was shown.
func TestRevokeAsks(t *testing.T) {
	for _, keys := range [][]string{
		{"x", keyEnter},
		{"x", "n"},
		{"x", keyEscape},
		{"x", "q"},
		{"x", "x"},
		{"x", "y", keyEscape},
		{"x", "y", "s", keyEscape},
		{"x", " "},
		{"y"},
		{keyEnter},
		{"x", keyInterrupt},
	} {
		m := newScene(t)
		m.press("j")
		for _, key := range keys {
			if r := m.press(key); r.kind == revokeAsked {
				t.Errorf("%q revokes", keys)
			}
		}
		if m.typing != commands && keys[len(keys)-1] != keyInterrupt {
			t.Errorf("after %q the keyboard is for %d", keys, m.typing)
		}
	}
	m := newScene(t)
	m.presses("j", "x", "y")
	o := scene(t)
	o.Keys[0].Row.Holders[0].Fence, o.Keys[0].Row.Holders[0].Agent = 99, "another"
	m.see(o) // the key has passed on
	m.presses("s", "t", "u", "c", "k", " ", "!")
	r := m.press(keyEnter)
	if r.kind != revokeAsked || r.holder.Fence != 17 || r.holder.Agent != "billing-7" || r.reason != "stuck !" {
		t.Errorf("the request is %+v for %+v", r, r.holder)
	}
	m = newScene(t)
	m.presses("j", "j", "j", "j", "j", "x") // a key with several holders
	if m.typing != commands || !strings.Contains(m.said, "--fence") {
		t.Errorf("with several holders: %q", m.said)
	}
	m.presses("G", "x") // one without a holder
	if m.typing != commands || !strings.Contains(m.said, "no holder") {
		t.Errorf("without a holder: %q", m.said)
	}
}

// q and Ctrl-C end it from everywhere, but q is a letter where text is typed.
func TestQuit(t *testing.T) {
	for _, keys := range [][]string{
		{"q"}, {keyInterrupt}, {"?", "q"}, {"/", keyInterrupt}, {"j", "x", "y", keyInterrupt},
	} {
		if r := newScene(t).presses(keys...); r.kind != quit {
			t.Errorf("%q does not quit", keys)
		}
	}
	if r := newScene(t).presses("/", "q"); r.kind == quit {
		t.Error("q quits while a filter is typed")
	}
}

// An answer about a key that is not asked about any more is dropped.
func TestLateAnswer(t *testing.T) {
	m := newScene(t)
	if r := m.presses("j", keyEnter); r.kind != whyAsked || r.key != "account:12345" {
		t.Fatalf("Enter asks %+v", r)
	}
	m.presses("j", keyEnter)
	m.explained("account:12345", &api.Why{Text: "late"})
	if m.why != nil {
		t.Error("the answer about another key is shown")
	}
	m.press(keyEscape)
	if lines := m.whyLines(80, 10); lines != nil {
		t.Errorf("Esc leaves %s", text(lines))
	}
}

// The pace of the journal is measured over the last pictures of one owner.
func TestPace(t *testing.T) {
	m := newScene(t)
	o := scene(t)
	for i := range 30 {
		o := *o
		o.At.Index += interlock.Index(50 * (i + 1))
		o.ServerTime = o.ServerTime.Add(time.Duration(i+1) * 500 * time.Millisecond)
		m.see(&o)
	}
	if n, known := m.perSecond(); !known || n != 100 || len(m.pace) > 22 {
		t.Errorf("%d entries/s, %v, of %d pictures", n, known, len(m.pace))
	}
	o.At.Epoch++
	m.see(o)
	if _, known := m.perSecond(); known {
		t.Error("the pace goes on across a fail-over")
	}
}

// An open explanation is asked for again as it grows old, and the old one is shown until the answer comes.
func TestWhyIsAskedAgain(t *testing.T) {
	m := newScene(t)
	m.presses("j", keyEnter)
	m.explained("account:12345", &api.Why{Text: "for less than 1 s"})
	o := scene(t)
	if m.see(o).kind != nothing {
		t.Error("it is asked for at once again")
	}
	o.ServerTime = o.ServerTime.Add(5 * time.Second)
	if r := m.see(o); r.kind != whyAsked || r.key != "account:12345" || m.why == nil {
		t.Errorf("after 5 s: %+v, %v", r, m.why)
	}
	m.press(keyEscape)
	o.ServerTime = o.ServerTime.Add(5 * time.Second)
	if m.see(o).kind != nothing {
		t.Error("it is asked for when it is closed")
	}
}

// While trouble is shown the events are read again, at most each 5 s.
func TestTroubleIsReadAgain(t *testing.T) {
	m := newScene(t)
	if m.press("t").kind != eventsAsked {
		t.Fatal("t does not ask for events")
	}
	o := scene(t)
	if m.see(o).kind != nothing {
		t.Error("events are asked for at once again")
	}
	o.ServerTime = o.ServerTime.Add(5 * time.Second)
	if m.see(o).kind != eventsAsked {
		t.Error("events are not read again")
	}
}
