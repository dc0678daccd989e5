package store

import (
	rand "math/rand/v2"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
)

func shapeOf(t *testing.T, text string) *Policy {
	t.Helper()
	p, problem := Compile(interlock.Pattern{Name: "p", Shape: text})
	if problem != nil {
		t.Fatalf("%s: %v", text, problem)
	}
	return p
}

func TestMayLieBelow(t *testing.T) {
	for _, c := range []struct {
		shape, key  string
		below, each bool
	}{
		{"zone:a/secret", "zone:a", true, false},
		{"zone:a/secret", "zone:a/secret", false, false},
		{"zone:a/secret", "zone", false, false},
		{"zone:a/secret", "zone:b", false, false},
		{"zone:a/secret/deep", "zone:a/secret", true, false},
		{"zone:{z}/secret", "zone:b", true, false},
		{"zone:{z}/secret", "zone:b/x", false, false},
		{"zone:{z}/secret", "zone:", false, false},
		{"zone:{z:lower}/secret", "zone:B", false, false},
		{"zone:{z:int}/secret", "zone:7", true, false},
		{"zone:{z:int}/secret", "zone:07", false, false},
		{"zone:{z:int}/secret", "zone:b", false, false},
		{"zone:{z}", "zone:b", false, false},
		{"zone:{z}/{rest...}", "zone:b", true, true},
		{"zone:{z}/{rest...}", "zone:b/x/y", true, true},
		{"zone:{z}/{rest...}", "area:b", false, false},
		{"zone:a/{rest...}", "zone:a", true, true},
		{"zone:a/{rest...}", "zone:ab", false, false},
		{"{a}-{b}/x", "p-q", true, false},
		{"{a}-{b}/x", "pq", false, false},
		{"{a}/x-{b}", "p", true, false},
		{"{a}/x-{b}", "p/x-1", false, false},
		{"{a}/{b}/{c}", "p", true, false},
		{"{a}/{b}/{c}", "p/q", true, false},
		{"{a}/{b}/{c}", "p/q/r", false, false},
	} {
		sh := &shapeOf(t, c.shape).shape
		if got := sh.MayLieBelow(c.key); got != c.below {
			t.Errorf("%s below %s: %v, want %v", c.shape, c.key, got, c.below)
		}
		if got := sh.CoversBelow(c.key); got != c.each {
			t.Errorf("%s covers what is below %s: %v, want %v", c.shape, c.key, got, c.each)
		}
	}
}

// TestKeysBelow compares with keys that fit: each lies below its ancestors.
func TestKeysBelow(t *testing.T) {
	r := rand.New(rand.NewPCG(28, 1))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	below, covered := 0, 0
	for range 20_000 {
		text := pick("z:", "", "z-") + pick("{a}", "{a:int}", "{a:lower}", "a", "{a}-{b}", "{a:lower}k{b:int}")
		for range r.IntN(3) {
			text += pick("/", "/a", "/x-", "k/")
			if name := pick("c", "d", "e", ""); name != "" && !strings.Contains(text, name) {
				text += "{" + name + pick("", ":int", ":lower") + "}"
			}
		}
		text += pick("", "", "/{rest...}")
		p, problem := Compile(interlock.Pattern{Name: "p", Shape: text})
		if problem != nil {
			continue
		}
		for range 20 {
			key := pick("z:", "", "z-") + pick("a", "1", "01", "A", "a-1", "akk5", "ak")
			for range r.IntN(4) {
				key += pick("/", "/a", "/x-", "k/") + pick("a", "1", "01", "A", "")
			}
			canonical, fits := p.canonical(key)
			if keypath.Problem(key) != nil {
				continue
			}
			for above, ok := keypath.Parent(key); ok; above, ok = keypath.Parent(above) {
				if fits && canonical == key {
					if below++; !p.shape.MayLieBelow(above) {
						t.Fatalf("%s fits %s, and lies below %s", key, text, above)
					}
				}
				if p.shape.CoversBelow(above) {
					if covered++; !fits || canonical != key {
						t.Fatalf("%s covers what is below %s, and %s is %s, %v", text, above, key, canonical, fits)
					}
				}
			}
		}
	}
	if below < 1000 || covered < 100 {
		t.Errorf("%d keys below others, %d covered: too few to say anything", below, covered)
	}
}
