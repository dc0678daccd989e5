package mcp

import (
	"testing"

	"github.com/interlockdev/interlock/internal/api"
)

// A request for one of several keys goes on while one of them is not of the lease around the process.
func TestBlocksOfAChoice(t *testing.T) {
	j := &Join{Keys: []string{"a", "b"}, Fence: 7}
	q := &api.Queued{Holders: []api.Holder{{Key: "a", Fence: 7}}}
	for _, c := range []struct {
		any    bool
		keys   []string
		blocks bool
	}{
		{false, []string{"a", "c"}, true}, {true, []string{"a", "c"}, false}, {true, []string{"a", "b/below"}, true},
	} {
		if own := j.blocks(q, c.any, c.keys); (own != nil) != c.blocks {
			t.Errorf("any %v of %q: %v", c.any, c.keys, own)
		}
	}
}
