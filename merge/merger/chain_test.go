package merger

import (
	"testing"

	"github.com/interlockdev/interlock/merge"
)

// A workspace names the base of each submission; the boundary takes it for a squash alone, and refuses it otherwise.
func TestTurnBase(t *testing.T) {
	for style, want := range map[merge.Style]string{"": "", merge.StyleMerge: "", merge.StyleSquash: "b"} {
		r := new(Record)
		r.Base, r.Head, r.Style = "b", "h", style
		got := new(Merger).turn(r, "p", 1, nil)
		if got.Base != want || got.Head != "h" || got.Parent != "p" || got.Sequence != 1 {
			t.Errorf("style %q: %+v, want base %q", style, got, want)
		}
	}
}
