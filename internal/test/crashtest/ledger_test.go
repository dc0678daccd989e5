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

// ledger is the server's acknowledgements.
type ledger struct {
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

func newLedger() *ledger {
	return &ledger{
		fences: map[interlock.Fence]string{}, held: map[string]grant{}, gone: map[string]grant{}, notes: map[string][]note{},
	}
}

// fence is the highest one acknowledged so far.
func (l *ledger) fence() interlock.Fence {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest
}

// granted notes a grant. The fence must be new, and above every fence that was
// acknowledged before the request was first sent.
func (l *ledger) granted(key string, a *answer, above interlock.Fence) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fence := a.Lease.Fence
	if where, known := l.fences[fence]; known {
		return fmt.Errorf("fence %s of %s was given out before, at %s", fence, key, where)
	}
	if fence <= above {
		return fmt.Errorf("fence %s of %s is not above %s, which was acknowledged before the request", fence, key, above)
	}
	l.fences[fence] = key
	l.newest = max(l.newest, fence)
	l.held[a.Lease.ID] = grant{key, fence}
	return nil
}

// released notes a release with its note.
func (l *ledger) released(id, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.held[id]
	delete(l.held, id)
	l.gone[id] = g
	l.order = append(l.order, id)
	if len(l.order) > checkedGone {
		delete(l.gone, l.order[0])
		l.order = l.order[1:]
	}
	list := append(l.notes[g.key], note{g.fence, text})
	slices.SortFunc(list, func(a, b note) int { return cmp.Compare(a.fence, b.fence) })
	l.notes[g.key] = list[max(0, len(list)-notesPerKey):]
}

// check asks the server for everything that it has acknowledged. Nothing may be
// under way.
func (l *ledger) check(ctx context.Context, t *testing.T, s *site) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	get := func(path string) answer {
		a, err := s.do(ctx, call{method: http.MethodGet, path: path})
		if err != nil {
			t.Fatalf("GET %s: %v", path, err)
		}
		return a
	}
	byKey := map[string][]interlock.Fence{}
	for id, g := range l.held {
		byKey[g.key] = append(byKey[g.key], g.fence)
		if a := get("/v1/leases/" + id); a.Status != http.StatusOK || a.Lease.Fence != g.fence || a.Lease.State != "held" {
			t.Errorf("the lease on %s with fence %s was acknowledged and not released; the server says: %s, fence %s, %s",
				g.key, g.fence, a, a.Lease.Fence, a.Lease.State)
		}
	}
	for id, g := range l.gone {
		if a := get("/v1/leases/" + id); a.Status != http.StatusGone {
			t.Errorf("the release of %s with fence %s was acknowledged; the server says: %s", g.key, g.fence, a)
		}
	}
	for key, want := range l.notes {
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
