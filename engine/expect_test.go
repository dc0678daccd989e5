package engine_test

import (
	"encoding/hex"
	"testing"

	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/shard"
)

// TestExpect: whichever events are expected, and whether or not they come, the state stays that
// of the folded events.
func TestExpect(t *testing.T) {
	for _, dir := range goldens(t) {
		var (
			e      = engine.New()
			g      = readGolden(t, dir)
			pieces shard.Joiner
			r      record.Reader
			all    []record.Event
			ends   = make([]int, len(g.entries))
		)
		for i, x := range g.entries {
			entry, err := pieces.Join(x)
			if err == nil && entry != nil {
				all, err = r.Append(all, entry)
			}
			if err != nil {
				t.Fatal(err)
			}
			ends[i] = len(all)
		}
		e.Expect(all)
		folded := 0
		for i, x := range g.entries {
			e.Expect(all[folded:min(folded+i%300, len(all))])
			if err := e.Fold(all[folded:ends[i]]); err != nil {
				t.Fatalf("%s, entry %d: %v", dir, x.Index, err)
			}
			folded = ends[i]
			e.Expect(all[:folded])
			if want, got := g.states[x.Index], e.Hash(); want != "" && want != hex.EncodeToString(got[:]) {
				t.Fatalf("%s: the state after entry %d has the hash %x, had %s", dir, x.Index, got, want)
			}
		}
	}
}
