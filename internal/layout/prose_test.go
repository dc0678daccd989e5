package layout

import (
	"flag"
	"os"
	"testing"
)

var write = flag.Bool("write", false, "write the counts of prose patterns")

// committedCounts is the file with the counts that no change may raise.
const committedCounts = "testdata/prose.txt"

// TestProse is a ratchet: the counts of idiom may fall, and never rise.
func TestProse(t *testing.T) {
	counts, err := Prose(root)
	if err != nil {
		t.Fatal(err)
	}
	if *write {
		if err := os.WriteFile(committedCounts, []byte(counts.Text()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(committedCounts)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := ReadProse(string(text))
	report(t, counts.Rises(committed), err)
}

// Every pattern is found, where it stands and nowhere else.
func TestProseCounts(t *testing.T) {
	const source = `package main

// f gives what it was told: whoever asks, at which time, says nobody.
func f() { _ = "who is told" + "which" }

type waiting struct{}

type ring struct{}
`
	c := ProseCounts{}
	if err := c.goFile("cmd/interlock/x.go", []byte(source)); err != nil {
		t.Fatal(err)
	}
	want := ProseCounts{
		{"comments", "words"}: 13, {"comments", "who"}: 1, {"comments", "nobody"}: 1, {"comments", "of-which"}: 1,
		{"comments", "says"}: 1, {"comments", "gives"}: 1, {"comments", "is-told"}: 1, {"comments", "X-gives"}: 1,
		{"cli", "words"}: 3, {"cli", "who"}: 1, {"cli", "is-told"}: 1,
		{"types", "words"}: 2, {"types", "participle"}: 1,
	}
	for k, n := range want {
		if c[k] != n {
			t.Errorf("%v: %d, want %d", k, c[k], n)
		}
	}
	back, err := ReadProse(c.Text())
	if err != nil {
		t.Fatal(err)
	}
	if rises := c.Rises(back); len(rises) != 0 {
		t.Errorf("counts that were written and read rise: %q", rises)
	}
	back[ProseKey{"comments", "says"}]--
	if rises := c.Rises(back); len(rises) != 1 {
		t.Errorf("one count rose, and these are reported: %q", rises)
	}
}
