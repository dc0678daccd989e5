package seeded

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// TestMistakesApply makes sure that each mistake still fits the file that it changes: after a
// change of that file this test shows that the mistake has to follow.
func TestMistakesApply(t *testing.T) {
	bugs := all(t)
	in := func(room string) (n int) {
		for _, b := range bugs {
			if b.Room() == room || strings.HasPrefix(b.Room(), room+"/") {
				n++
			}
		}
		return n
	}
	for _, b := range bugs {
		text, err := b.Apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.HasSuffix(b.File, ".go") {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), b.File, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("mistake %s is no Go: %v", b.Name, err)
		}
	}
	if len(bugs) < 140 {
		t.Errorf("there are only %d mistakes", len(bugs))
	}
	for room, least := range map[string]int{
		"engine": 40, "shard": 8, "journal/filejournal": 8, "journal/etcdjournal": 4, "journal/remote": 8,
		"journal/pgjournal": 8, "journal/oncejournal": 8, "journal/redisjournal": 8, "server": 8, "proto": 8, "guard": 8,
		"client": 8,
	} {
		if n := in(room); n < least {
			t.Errorf("there are only %d mistakes in %s, want %d", n, room, least)
		}
	}
}

// TestEveryInvariantIsBroken makes sure that there is a mistake for each invariant that a
// finder checks. I18 belongs to a part that does not exist yet.
func TestEveryInvariantIsBroken(t *testing.T) {
	broken := map[string]bool{}
	for _, b := range all(t) {
		for _, id := range strings.Fields(b.Breaks) {
			broken[id] = true
		}
	}
	for _, id := range []string{
		"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14", "I15", "I16", "I17", "I19",
		"I20", "liveness",
	} {
		if !broken[id] {
			t.Errorf("no mistake breaks %s", id)
		}
	}
}

func TestParse(t *testing.T) {
	const head, body = "title: t\nfile: engine/mode.go\nbreaks: I1\nfinders: worlds\n", "--- was\na\n--- is\nb\n"
	if _, err := parse("good", head+body); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		"", head, head + "--- was\na\n", strings.Replace(head, "I1", "I21", 1) + body,
		strings.Replace(head, "worlds", "nobody", 1) + body,
		strings.Replace(head, "title: t\n", "", 1) + body, head + "more: x\n" + body, head + "--- was\na\n--- is\na\n",
	} {
		if b, err := parse("bad", bad); err == nil {
			t.Errorf("%q was read as %+v", bad, b)
		}
	}
}

// TestAppliesOnce: a mistake changes one place, or is refused.
func TestAppliesOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.go"), "a\nb\na\nab\n")
	if text, err := (&Bug{File: "f.go", Was: "ab\n", Is: "x\n"}).Apply(dir); err != nil || string(text) != "a\nb\na\nx\n" {
		t.Errorf("got %q, %v", text, err)
	}
	for _, was := range []string{"a\n", "c\n"} {
		if text, err := (&Bug{File: "f.go", Was: was, Is: "x\n"}).Apply(dir); err == nil {
			t.Errorf("%q was replaced: %q", was, text)
		}
	}
}

func all(t *testing.T) []Bug {
	t.Helper()
	bugs, err := Bugs()
	if err != nil {
		t.Fatal(err)
	}
	return bugs
}
