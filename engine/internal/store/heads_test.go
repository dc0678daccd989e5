package store

import (
	"fmt"
	rand "math/rand/v2"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
)

// TestHeads: of many patterns a key fits the same one as when all are tried in their order.
func TestHeads(t *testing.T) {
	texts := []string{"a", "ab", "b", "ab:", "a/b", "x"}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		text := func() string { return texts[rnd.IntN(len(texts))] }
		s := &Namespace{Agenda: &PendingWork{objects: new(int)}}
		for i := range 2 * fewPatterns {
			p := interlock.Pattern{Name: fmt.Sprint("p", i)}
			switch rnd.IntN(5) {
			case 0:
				p.Shape = text()
			case 1:
				p.Shape = text() + "/{rest...}"
			case 2:
				p.Shape = "{v:lower}/" + text()
			case 3:
				p.Shape = text() + "{v:int}"
				p.Aliases = []string{"alias" + text() + "{v}"}
			default:
				p.Shape = text() + "{v}" + "/" + text()
			}
			if pol, problem := Compile(p); problem == nil {
				s.Patterns = append(s.Patterns, pol)
			}
		}
		if s.heads = headsOf(s.Patterns); s.heads.at == nil {
			continue
		}
		for range 200 {
			key := interlock.Key(strings.Repeat("alias", rnd.IntN(2)) + text() + fmt.Sprint(rnd.IntN(3)))
			if rnd.IntN(2) == 0 {
				key += interlock.Key("/" + text())
			}
			var want *Policy
			spelled := key
			for _, p := range s.Patterns {
				if c, ok := p.canonical(string(key)); ok && keypath.Problem(c) == nil {
					want, spelled = p, interlock.Key(c)
					break
				}
			}
			if got, text := firstFit(s.Patterns, &s.heads, s.Agenda.objects, key); got != want || text != spelled {
				t.Fatalf("seed %d: %s fits %v as %s, want %v as %s", seed, key, got, text, want, spelled)
			}
		}
	}
}
