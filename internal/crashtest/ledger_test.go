package crashtest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/interlockdev/interlock"
)

// history is what the server has acknowledged.
type history struct {
	mu     sync.Mutex
	fences map[interlock.Fence]string // every fence ever seen, and where
	newest interlock.Fence
	held   map[string]grant  // by lease id
	gone   map[string]grant  // released, by lease id; the last ones
	notes  map[string][]note // by key
	order  []string          // of gone
}

type grant struct {
	key   string
	fence interlock.Fence
}

type note struct {
	fence interlock.Fence
	text  string
}

// notesPerKey is how many notes the server keeps at a key.
const notesPerKey = 8

// checkedGone is how many released leases are asked for after a restart.
const checkedGone = 64

func newHistory() *history {
	return &history{fences: map[interlock.Fence]string{}, held: map[string]grant{}, gone: map[string]grant{}, notes: map[string][]note{}}
}

// fence is the highest one acknowledged so far.
func (h *history) fence() interlock.Fence {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest
}

// granted notes a grant. The fence must be new, and above every fence that was
// acknowledged before the request was first sent.
func (h *history) granted(key string, a *answer, above interlock.Fence) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	fence := a.Lease.Fence
	if where, known := h.fences[fence]; known {
		return fmt.Errorf("fence %s of %s was given out before, at %s", fence, key, where)
	}
	if fence <= above {
		return fmt.Errorf("fence %s of %s is not above %s, which was acknowledged before the request", fence, key, above)
	}
	h.fences[fence] = key
	h.newest = max(h.newest, fence)
	h.held[a.Lease.ID] = grant{key, fence}
	return nil
}

// released notes a release with its note.
func (h *history) released(id, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.held[id]
	delete(h.held, id)
	h.gone[id] = g
	h.order = append(h.order, id)
	if len(h.order) > checkedGone {
		delete(h.gone, h.order[0])
		h.order = h.order[1:]
	}
	list := append(h.notes[g.key], note{g.fence, text})
	slices.SortFunc(list, func(a, b note) int { return cmp.Compare(a.fence, b.fence) })
	h.notes[g.key] = list[max(0, len(list)-notesPerKey):]
}

// check asks the server for everything that it has acknowledged. Nothing may be
// under way.
func (h *history) check(ctx context.Context, t *testing.T, s *site) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	get := func(path string) answer {
		a, err := s.do(ctx, call{method: http.MethodGet, path: path})
		if err != nil {
			t.Fatalf("GET %s: %v", path, err)
		}
		return a
	}
	byKey := map[string][]interlock.Fence{}
	for id, g := range h.held {
		byKey[g.key] = append(byKey[g.key], g.fence)
		if a := get("/v1/leases/" + id); a.Status != http.StatusOK || a.Lease.Fence != g.fence || a.Lease.State != "held" {
			t.Errorf("the lease on %s with fence %s was acknowledged and not released; the server says: %s, fence %s, %s",
				g.key, g.fence, a, a.Lease.Fence, a.Lease.State)
		}
	}
	for id, g := range h.gone {
		if a := get("/v1/leases/" + id); a.Status != http.StatusGone {
			t.Errorf("the release of %s with fence %s was acknowledged; the server says: %s", g.key, g.fence, a)
		}
	}
	for key, want := range h.notes {
		a := get("/v1/keys/" + key)
		var got []note
		for _, n := range a.Notes {
			got = append(got, note{n.Fence, n.Text})
		}
		if !slices.Equal(got, want) {
			t.Errorf("the notes at %s are %v, acknowledged were %v", key, got, want)
		}
		for _, holder := range a.Holders {
			if holder.Liveness != "offered" && !slices.Contains(byKey[key], holder.Fence) {
				t.Errorf("%s is held under fence %s, which nobody was told", key, holder.Fence)
			}
		}
	}
}
