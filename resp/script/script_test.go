package script_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/lockscript"
	"github.com/interlockdev/interlock/resp/script"
)

var spellings = flag.Int("spellings", 3000, "how many scripts are spelled at random")

func text(t testing.TB, kind string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "kinds", kind+".lua"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func known(t testing.TB, text string) *script.Program {
	t.Helper()
	p, err := script.Recognise(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

var (
	no  = script.Case{Answer: script.Int}
	yes = script.Case{Answer: script.Int, N: 1}
	ok  = script.Case{Answer: script.Status, S: "OK"}
	bad = script.Case{Answer: script.Error, S: "ERR OTHER"}
	px2 = script.Amount{Arg: 2, Unit: time.Millisecond}
)

func does(c script.Case, op script.Op, ttl script.Amount) script.Case {
	c.Op, c.TTL = op, ttl
	return c
}

// cases are those of a script that does not compare beginnings.
func cases(free, other, equal, lasting script.Case) script.Cases {
	return script.Cases{Free: free, Other: other, Akin: other, Equal: equal, Lasting: lasting}
}

// TestKinds: each kind of script has its meaning.
func TestKinds(t *testing.T) {
	deleted, renewed := does(yes, script.Delete, script.Amount{}), does(yes, script.Expire, px2)
	nothing := script.Case{}
	seconds := script.Amount{Arg: 1, Unit: time.Second}
	left := script.Case{Answer: script.TTL, Unit: time.Millisecond}
	more := px2
	more.More = true
	missing := script.Case{Answer: script.Int, N: -3}
	release := script.Program{Value: 1, Args: 1, Cases: cases(no, no, deleted, deleted)}
	renew := script.Program{Value: 1, Args: 2, Cases: cases(no, no, renewed, renewed)}
	set := does(ok, script.Set, px2)
	px3 := does(ok, script.Set, script.Amount{Arg: 3, Unit: time.Millisecond})
	kinds := map[string]script.Program{
		"release": release, "release-plain": release, "release-early": release,
		"release-true":    {Value: 1, Args: 1, Cases: cases(nothing, nothing, deleted, deleted)},
		"release-publish": {Value: 1, Args: 2, Cases: cases(nothing, nothing, deleted, deleted)},
		"release-or-gone": {
			Value: 1, Args: 1, Cases: cases(script.Case{Answer: script.Int, N: -1}, no, deleted, deleted),
		},
		"release-or-error": {Value: 1, Args: 1, Cases: cases(ok, bad, deleted, deleted)},
		"renew":            renew, "renew-early": renew,
		"renew-seconds": {
			Value: 2, Args: 2,
			Cases: cases(nothing, nothing, does(yes, script.Expire, seconds), does(yes, script.Expire, seconds)),
		},
		"extend": {
			Value: 1, Args: 3, Number: 2, IfArg: 3, IfText: "0", Cases: cases(no, no, renewed, no),
			Then: cases(no, no, does(yes, script.Expire, more), no),
		},
		"left":         {Value: 1, Args: 1, Cases: cases(missing, missing, left, script.Case{Answer: script.Int, N: -1})},
		"left-or-zero": {Value: 1, Args: 1, Cases: cases(no, no, left, no)},
		"left-or-error": {
			Value: 1, Args: 1,
			Cases: cases(
				bad, bad, script.Case{Answer: script.TTL, Unit: time.Second}, script.Case{Answer: script.Int, N: -1},
			),
		},
		"take": {
			Value: 1, Args: 2,
			Cases: cases(does(yes, script.Set, script.Amount{Arg: 2, Unit: time.Second}), no, no, no),
		},
		"take-or-renew": {Value: 1, Args: 2, Cases: cases(does(yes, script.Set, px2), no, renewed, renewed)},
		"take-true":     {Value: 1, Args: 2, Cases: cases(does(yes, script.Set, px2), nothing, renewed, renewed)},
		"take-or-error": {Value: 1, Args: 2, Cases: cases(set, bad, set, set)},
		"obtain": {
			Value: 1, Args: 3, Number: 2, Prefix: 2,
			Cases: script.Cases{Free: px3, Akin: px3, Equal: px3, Lasting: px3},
		},
		"take-all":    {Value: 1, Args: 2, All: &script.All{Op: script.Set, TTL: px2, Fail: no, Count: true}},
		"renew-all":   {Value: 1, Args: 2, All: &script.All{Op: script.Expire, TTL: px2, Fail: no, Count: true}},
		"release-all": {Value: 1, Args: 1, All: &script.All{Op: script.Delete, Count: true}},
	}
	files, err := filepath.Glob(filepath.Join("testdata", "kinds", "*.lua"))
	if err != nil || len(files) != len(kinds) {
		t.Errorf("%d files for %d kinds (%v)", len(files), len(kinds), err)
	}
	for kind, want := range kinds {
		if got := known(t, text(t, kind)); !reflect.DeepEqual(*got, want) {
			t.Errorf("%s:\n%+v %+v\nwant\n%+v %+v", kind, *got, got.All, want, want.All)
		}
	}
}

// TestSpellings: however a script is spelled, it is recognised, and what it does is known. With a change that counts it
// is refused, or it is known that it does something else.
func TestSpellings(t *testing.T) {
	refused, others := 0, 0
	for seed := range *spellings {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		source, want := lockscript.Write(random)
		got, err := script.Recognise(source)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Fatalf("seed %d: %v\n%s\n%+v\nwant\n%+v", seed, err, source, got, want)
		}
		got, err = script.Recognise(lockscript.Change(random, source))
		switch {
		case err != nil:
			refused++
		case !reflect.DeepEqual(*got, want):
			others++
		}
	}
	if least := *spellings / 3; refused < least || others == 0 {
		t.Errorf("of %d changed scripts %d are refused, and %d do something else", *spellings, refused, others)
	}
}

// deleteAll is a script that deletes all keys with the value.
func deleteAll(counts, returns string) string {
	return "local n = 0 local m = 0 for i, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then " +
		"redis.call('del', k) " + counts + " end end return " + returns
}

// TestRefused: what does anything but a lock's work is refused, with its line and the reason.
func TestRefused(t *testing.T) {
	release := text(t, "release")
	for _, c := range [][2]string{
		{"", "line 1: it does nothing with a lock"},
		{"return 1", "line 1: it does nothing with a lock"},
		{"return redis.call('get', KEYS[1])", "line 1: it returns what no lock's script returns"},
		{"return redis.call('del', KEYS[1])", "line 1: it writes to a key that does not have the value"},
		{"\nredis.call('lpush', KEYS[1], 'a')", "line 2: it calls lpush, which no lock's script calls so"},
		{"return redis.call('set', 'k', 'v')", "line 1: set is about something else than its key"},
		{"local a = 1 a = b", "line 1: b is no local"},
		{"local KEYS = {}", "line 1: KEYS gets another meaning"},
		{"x = 1", "line 1: x is no local"},
		{"while true do end", `line 1: it has "while"`},
		{"if true then return 1", `line 1: "" stands where "end" is expected`},
		{"return 1 return 2", `line 1: "return" is not expected here`},
		{release + "--[[", "line 6: a comment has no end, or a long bracket with a level"},
		{"return redis.call([[get]], KEYS[1])", "line 1: it has a string in long brackets"},
		{"return redis.call('g\\101t',KEYS[1])", "line 1: a string has no end, or an escape"},
		{"return redis.call\n('get', KEYS[1])", "line 2: parentheses stand on another line than their function"},
		{"return {1, 2}", `line 1: "{" is no name`},
		{"return @", `line 1: '@' is no sign of Lua`},
		{strings.ReplaceAll(release, "==", "~="), "line 2: it writes to a key that does not have the value"},
		{strings.ReplaceAll(release, "ARGV[1]", "'LOCKED'"), "line 1: it compares what no lock's script compares"},
		{strings.ReplaceAll(release, "KEYS[1]", "KEYS[2]"), "line 1: it uses another element of KEYS"},
		{strings.ReplaceAll(release, "redis.call", "call"), "line 1: it calls call in a way that no lock's script does"},
		{
			strings.Replace(release, "return", "redis.call('del', KEYS[1]) return", 1),
			"line 2: it calls del after it has written",
		},
		{strings.Repeat(" ", 5<<10), "line 1: it has more than 4096 bytes"},
		{"return " + strings.Repeat("(", 1000), "line 1: it is nested too deep"},
		{
			"for i, k in ipairs(KEYS) do redis.call('del', k) end return #KEYS",
			"line 1: it writes to a key that does not have",
		},
		{"for i, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then redis.call('del', k) end end return #KEYS", ""},
		{"local n = 0 for i, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then n = n + 1 end end return n", ""},
		{"for i, k in ipairs(KEYS) do if redis.call('exists', k) == 1 then return 0 end end return #KEYS", ""},
		{"local held = redis.call('get', KEYS[1]) if held == nil then redis.call('set', KEYS[1], ARGV[1]) return 1 end", ""},
		{
			strings.Replace(release, "then", "then if not tonumber(ARGV[2]) then return 0 end", 1),
			"line 1: it depends on whether an argument is a number",
		},
		{
			strings.Replace(release, "then", "then if tonumber(ARGV[2]) == nil then return 0 end", 1),
			"line 1: it compares what no lock's script compares",
		},
		{
			strings.Replace(release, "then", "then if redis.call('ttl', KEYS[1]) > 0 then return 0 end", 1),
			"line 1: it depends on whether a ttl is rounded to 0 seconds",
		},
		{
			strings.Replace(release, "then", "then -- mine\rredis.call('incr', KEYS[1])", 1),
			"line 1: it calls incr, which no lock's script calls so",
		},
		{
			strings.Replace(release, "return 0", "return redis.error_reply('-GONE')", 1),
			"line 4: it returns an error that has no first word",
		},
		{deleteAll("n = n + 1", "n + 1"), "line 1: it returns what no lock's script returns"},
		{deleteAll("m = n + 1", "m"), "line 1: it counts otherwise than by one"},
		{deleteAll("n = n + 1 m = 1", "m"), "line 1: it counts otherwise than by one"},
	} {
		source, want := c[0], c[1]
		p, err := script.Recognise(source)
		if err == nil {
			t.Errorf("%.200s\nis taken for %+v", source, *p)
		} else if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.200s\n%v\nwant %s", source, err, want)
		}
	}
}

// TestArguments: a script is called with a key and at least the arguments that it uses.
func TestArguments(t *testing.T) {
	for _, c := range []struct {
		kind       string
		keys, args int
		want       bool
	}{
		{"release", 1, 1, true},
		{"release", 1, 3, true},
		{"release", 2, 1, true},
		{"release", 0, 1, false},
		{"release", 1, 0, false},
		{"take-all", 3, 2, true},
		{"take-all", 3, 1, false},
		{"take-all", 0, 2, false},
	} {
		if got := known(t, text(t, c.kind)).Takes(c.keys, c.args); got != c.want {
			t.Errorf("%v takes %d keys and %d arguments: %t", c.kind, c.keys, c.args, got)
		}
	}
}

// FuzzRecognise: no text makes the parser fail, or is known to write to a key that does not have the value.
func FuzzRecognise(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "kinds", "*.lua"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(text(f, strings.TrimSuffix(filepath.Base(file), ".lua")))
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := script.Recognise(source)
		if err != nil || p.All != nil {
			return
		}
		for _, c := range []script.Cases{p.Cases, p.Then} {
			if c.Other.Op != script.Nothing || p.Prefix == 0 && c.Akin.Op != script.Nothing ||
				c.Free.Op != script.Nothing && c.Free.Op != script.Set || p.Args < p.Value {
				t.Errorf("%+v\n%s", *p, source)
			}
		}
	})
}
