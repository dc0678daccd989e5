package lockscript

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/resp/script"
)

// writer spells one script.
type writer struct {
	*rand.Rand
	key, value, held string // expressions
}

func (w *writer) one(of ...string) string { return of[w.IntN(len(of))] }

// cased spells the name of a command.
func (w *writer) cased(name string) string {
	return w.one(name, strings.ToUpper(name), strings.ToUpper(name[:1])+name[1:])
}

func (w *writer) call(name string, args ...string) string {
	quote := w.one("'", `"`)
	return fmt.Sprintf("redis.%s(%s)", w.one("call", "call", "pcall"),
		strings.Join(append([]string{quote + w.cased(name) + quote, w.key}, args...), ", "))
}

// answer is what a script returns, with its spellings.
type answer struct {
	means script.Case
	texts []string
}

var (
	refusals = []answer{
		{script.Case{Answer: script.Int}, []string{"return 0"}},
		{script.Case{}, []string{"return nil", "return false", "return"}},
		{script.Case{Answer: script.Int, N: -1}, []string{"return -1"}},
		{script.Case{Answer: script.Error, S: "ERR LOST"}, []string{"return redis.error_reply('LOST')"}},
		{script.Case{Answer: script.Text, S: "lost"}, []string{"return 'lost'"}},
	}
	successes = []answer{
		{script.Case{Answer: script.Int, N: 1}, []string{"return 1", "return true"}},
		{script.Case{Answer: script.Status, S: "OK"}, []string{"return redis.status_reply('OK')"}},
	}
	writes = []struct {
		op    script.Op
		unit  time.Duration
		names []string
	}{
		{script.Delete, 0, []string{"del", "unlink"}},
		{script.Expire, time.Millisecond, []string{"pexpire"}},
		{script.Expire, time.Second, []string{"expire"}},
	}
)

// Write writes a script that compares the value of its key with an argument, and what it means.
func Write(random *rand.Rand) (text string, want script.Program) {
	w := &writer{Rand: random, key: "KEYS[1]"}
	want.Value = 1 + w.IntN(2)
	ttlArg := 3 - want.Value
	w.value = fmt.Sprintf("ARGV[%d]", want.Value)
	var b strings.Builder
	if w.IntN(3) == 0 {
		fmt.Fprintf(&b, "local key = %s\n", w.key)
		w.key = "key"
	}
	if w.IntN(3) == 0 {
		fmt.Fprintf(&b, "local token = %s\n", w.value)
		w.value = "token"
	}
	if w.held = w.call("get"); w.IntN(2) == 0 {
		fmt.Fprintf(&b, "local held = %s\n", w.held)
		w.held = "held"
	}
	refusal, success := refusals[w.IntN(len(refusals))], successes[w.IntN(len(successes))]
	write := writes[w.IntN(len(writes))]
	want.Args = want.Value
	var args []string
	yes := success.means
	if yes.Op = write.op; write.op == script.Expire {
		yes.TTL = script.Amount{Arg: ttlArg, Unit: write.unit}
		want.Args = 2
		args = []string{w.one(fmt.Sprintf("ARGV[%d]", ttlArg), fmt.Sprintf("tonumber(ARGV[%d])", ttlArg))}
	}
	call := w.call(w.one(write.names...), args...)
	do := call + w.one("\n", "; ") + w.one(success.texts...)
	if success.means.N == 1 && w.IntN(2) == 0 {
		do = "return " + call
	}
	no := w.one(refusal.texts...)
	want.Cases = script.Cases{
		Free: refusal.means, Other: refusal.means, Akin: refusal.means, Equal: yes, Lasting: yes,
	}
	same := w.one(w.held+" == "+w.value, w.value+" == "+w.held, "not ("+w.held+" ~= "+w.value+")",
		"("+w.held+" == "+w.value+")", w.held+" and "+w.value+" == "+w.held)
	differs := w.one(w.held+" ~= "+w.value, w.value+" ~= "+w.held, "not ("+w.value+" == "+w.held+")",
		"not "+w.held+" or "+w.held+" ~= "+w.value)
	forms := []string{
		"if " + same + " then " + do + " else " + no + " end",
		"if " + same + " then " + do + " end " + no,
		"if " + differs + " then " + no + " else " + do + " end",
		"if " + differs + " then " + no + " end\n" + do,
		"if " + same + " then do " + do + " end else if true then " + no + " end end",
	}
	if refusal.means == (script.Case{}) {
		forms = append(forms, "if "+same+" then "+do+" end")
	}
	body := w.one(forms...)
	switch w.IntN(4) {
	case 0: // another answer for a free key
		gone := refusals[w.IntN(len(refusals))]
		body = fmt.Sprintf("if %s then %s else%s", w.one("not "+w.held, w.held+" == false", "false == "+w.held),
			w.one(gone.texts...), forms[0])
		want.Cases.Free = gone.means
	case 1: // a free key is taken
		unit := w.one("PX", "EX")
		take := script.Case{
			Op: script.Set, Answer: script.Int, N: 1,
			TTL: script.Amount{Arg: 3, Unit: map[string]time.Duration{"PX": time.Millisecond, "EX": time.Second}[unit]},
		}
		option := []string{"'" + w.cased(unit) + "', ARGV[3]", "'" + w.cased("NX") + "'"}
		if w.IntN(2) == 0 {
			slices.Reverse(option)
		}
		set := w.call("set", append([]string{w.value}, option...)...)
		body = w.one(
			"if "+set+" then return 1 end "+body,
			"if not "+w.held+" then "+set+" return true end "+body,
			"local free = "+set+"; if free then return 1 else "+body+" end",
		)
		want.Cases.Free, want.Args = take, 3
	}
	b.WriteString(body)
	return w.spaced(b.String()), want
}

var piece = regexp.MustCompile(`--[^\n]*\n|'[^']*'|"[^"]*"|\w+|[=~<>]=|\S`)

// Spell writes a script with other blanks and comments.
func Spell(random *rand.Rand, text string) string { return (&writer{Rand: random}).spaced(text) }

// spaced spells the blanks of a script, with comments and semicolons.
func (w *writer) spaced(text string) string {
	var b strings.Builder
	last := ""
	for _, p := range piece.FindAllString(text, -1) {
		word := func(s string) bool { return s != "" && regexp.MustCompile(`^\w`).MatchString(s) }
		switch {
		case p == "(": // on the line of its function
		case w.IntN(30) == 0:
			b.WriteString(w.one(" -- it's \"mine\"\n", " --[[ in\nthe middle ]] ", "\r\n\t"))
		case word(last) && word(p) || w.IntN(3) == 0:
			b.WriteString(w.one(" ", "\n", "  "))
		}
		b.WriteString(p)
		last = p
	}
	return b.String() + w.one("", "\n", ";", " -- end")
}

// Change changes one thing in a script that counts.
func Change(random *rand.Rand, text string) string {
	w := &writer{Rand: random}
	swaps := [][2]string{
		{"==", "~="},
		{"~=", "=="},
		{"KEYS[1]", "KEYS[2]"},
		{"KEYS[1]", "'other'"},
		{"ARGV[1]", "ARGV[2]"},
		{"ARGV[2]", "ARGV[1]"},
		{"ARGV[1]", "'LOCKED'"},
		{"return", "redis.call('del', KEYS[1]) return"},
		{"return", "redis.call('incr', KEYS[1]) return"},
		{"return", "while true do end return"},
		{"return 0", "return 1"},
		{"return", "return not"},
		{"not", ""},
		{"end", ""},
		{"and", "or"},
		{"or", "and"},
		{"get", "hget"},
		{"'", "\""},
		{"del", "flushall"},
		{"pexpire", "persist"},
		{"ARGV[3]", "-1"},
		{"if", "if not"},
		{"then", "then redis.call('set', KEYS[1], ARGV[1])"},
		{"'NX'", "'XX'"},
		{"'NX'", "'GET'"},
		{"1", "2"},
		{"0", "7"},
	}
	for {
		swap := swaps[w.IntN(len(swaps))]
		n := strings.Count(text, swap[0])
		if n == 0 {
			continue
		}
		at := 0
		for range w.IntN(n) + 1 {
			at += strings.Index(text[at:], swap[0]) + len(swap[0])
		}
		return text[:at-len(swap[0])] + swap[1] + text[at:]
	}
}
