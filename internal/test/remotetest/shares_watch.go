package remotetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock/placement"
)

// sharesWatch asks for a key of every namespace again and again, at the servers without a fault. It notes how long
// none of them answered, how long no server owned a shard, and how often the owner of a shard changed: with each change
// its epoch becomes higher.
type sharesWatch struct {
	t       testing.TB
	servers []*Instance
	down    *atomic.Pointer[Instance] // the server with a fault
	deaf    atomic.Pointer[Instance]  // the server that was killed, stopped or cut off: it owns nothing
	cancel  context.CancelFunc
	asking  sync.WaitGroup

	mu          sync.Mutex                 // guards the fields below
	last        [shareNamespaces]time.Time // when it was answered
	longest     time.Duration
	worst       string                 // the fault before the longest time without an answer, and the namespace
	owned       [shareShards]time.Time // when its last owner was asked
	unowned     time.Duration
	abandoned   string              // the fault before the longest time without an owner, and the shard
	first       [shareShards]uint64 // the epoch of a shard when it was first seen; 0 if it was not
	newest      [shareShards]uint64
	allowed     int // changes of owners
	faults      int
	newestFault string
}

const (
	askEvery  = 200 * time.Millisecond
	lookEvery = 50 * time.Millisecond
)

func watchShares(t testing.TB, servers []*Instance, fourth *Instance, down *atomic.Pointer[Instance]) *sharesWatch {
	ctx, cancel := context.WithCancel(t.Context())
	w := &sharesWatch{t: t, servers: servers, down: down, cancel: cancel}
	for shard := range w.owned {
		w.owned[shard] = time.Now()
	}
	for _, s := range append(slices.Clone(servers), fourth) {
		w.asking.Go(func() {
			for ctx.Err() == nil {
				w.look(ctx, s)
				select {
				case <-time.After(lookEvery):
				case <-ctx.Done():
				}
			}
		})
	}
	for n := range shareNamespaces {
		w.last[n] = time.Now()
		w.asking.Go(func() {
			for i := n; ctx.Err() == nil; i++ {
				if s := servers[i%len(servers)]; s != down.Load() {
					// The next question does not wait for this one: its server may have forwarded it to one that stands still.
					w.asking.Go(func() { w.ask(ctx, s, n) })
				}
				select {
				case <-time.After(askEvery):
				case <-ctx.Done():
				}
			}
		})
	}
	return w
}

// look asks a server which shards it owns. The time without an owner is the longest that fits to the answers: from when
// the last owner was asked until the next one has answered.
func (w *sharesWatch) look(ctx context.Context, s *Instance) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	began := time.Now()
	status, text, err := s.fetch(ctx, http.MethodGet, "/v1/shards", "")
	if err != nil || status != http.StatusOK {
		return
	}
	var list struct {
		Shards []struct {
			Shard int
			Here  bool
		}
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list.Shards) != shareShards {
		w.t.Errorf("the list of shards: %v: %s", err, text)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == w.deaf.Load() {
		return
	}
	now := time.Now()
	for _, shard := range list.Shards {
		if !shard.Here {
			continue
		}
		if d := now.Sub(w.owned[shard.Shard]); d > w.unowned {
			w.unowned, w.abandoned = d, fmt.Sprintf("%s, fault %d: shard %d", w.newestFault, w.faults, shard.Shard)
		}
		if began.After(w.owned[shard.Shard]) {
			w.owned[shard.Shard] = began
		}
	}
}

func (w *sharesWatch) ask(ctx context.Context, s *Instance, n int) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	a, err := s.as(namespace(n)).call(ctx, http.MethodGet, "/v1/keys/lock/0", "")
	if err != nil || a.status != http.StatusOK {
		return
	}
	epoch, err := strconv.ParseUint(a.At.Epoch, 10, 64)
	if err != nil {
		w.t.Errorf("an answer without an epoch: %+v", a)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, shard := time.Now(), placement.Shard(namespace(n), shareShards)
	w.answered(n, now)
	if w.first[shard] == 0 {
		w.first[shard] = epoch
	}
	w.newest[shard] = max(w.newest[shard], epoch)
}

// answered needs mu.
func (w *sharesWatch) answered(n int, now time.Time) {
	d := now.Sub(w.last[n])
	if n < movedNamespaces {
		d /= movesFor
	}
	if d > w.longest {
		w.longest, w.worst = d, fmt.Sprintf("%s, fault %d: %s", w.newestFault, w.faults, namespace(n))
	}
	w.last[n] = now
}

// answeredSince reports whether all namespaces were answered since a time.
func (w *sharesWatch) answeredSince(t time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.last {
		if at.Before(t) {
			return false
		}
	}
	return true
}

// fault is called before a server goes. All that it owns may go to others, and when it is back, or another one comes,
// its share.
func (w *sharesWatch) fault(name string, s *Instance) {
	owns := 0
	if s.cmd != nil {
		if _, text, err := s.fetch(w.t.Context(), http.MethodGet, "/v1/shards", ""); err == nil {
			owns = bytes.Count(text, []byte(`"here":true`))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults++
	w.newestFault = name
	w.allowed += owns + (shareShards+shareServers-1)/shareServers
}

// end ends the questions.
func (w *sharesWatch) end() {
	w.cancel()
	w.asking.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range w.last {
		w.answered(n, time.Now())
	}
}

// verify compares what was seen with the bounds. An owner that fails without a fault of the test, such as one that
// loses a race for a shard, moves it too; the log of its server has it.
func (w *sharesWatch) verify(servers []*Instance) {
	w.t.Helper()
	moves, failures := 0, 0
	for shard := range w.first {
		moves += int(w.newest[shard] - w.first[shard])
	}
	for _, s := range servers {
		text, err := os.ReadFile(s.log)
		if err != nil {
			w.t.Error(err)
		}
		failures += strings.Count(string(text), "this server does not own a shard")
	}
	w.t.Logf("no shard was without an owner for longer than %v (%s)", w.unowned.Round(time.Millisecond), w.abandoned)
	w.t.Logf("no namespace was without an answer for longer than %v (%s); "+
		"after %d faults shards had %d new owners: %d allowed, and %d failures", w.longest.Round(time.Millisecond), w.worst, w.faults, moves, w.allowed, failures)
	w.t.Attr("count.moves", fmt.Sprint(moves))
	if w.unowned > *unownedLimit {
		w.t.Errorf("a shard had no owner for %v: %s", w.unowned, w.abandoned)
	}
	if w.longest > *unansweredLimit {
		w.t.Errorf("a namespace was not answered for %v: %s", w.longest, w.worst)
	}
	if moves > w.allowed+failures {
		w.t.Errorf("shards had %d new owners: at most %d are explained", moves, w.allowed+failures)
	}
}

// allKnowOwners reports whether every server answers for every namespace, or names the server that does: no call takes
// more than two hops.
func allKnowOwners(t testing.TB, servers []*Instance) bool {
	byAddress := map[string]*Instance{}
	for _, s := range servers {
		byAddress["http://"+s.http] = s
	}
	ask := func(s *Instance, n int) (answer, error) {
		at := s.as(namespace(n))
		at.alone = true
		return at.call(t.Context(), http.MethodGet, "/v1/keys/lock/0", "")
	}
	for n := range shareNamespaces {
		owners := 0
		for _, s := range servers {
			a, err := ask(s, n)
			if err == nil && a.status == http.StatusOK {
				owners++
				continue
			}
			next := byAddress[a.Active.HTTP]
			if err != nil || a.Code != "not_owner" || next == nil {
				return false
			}
			if a, err = ask(next, n); err != nil || a.status != http.StatusOK {
				return false
			}
		}
		if owners != 1 {
			return false
		}
	}
	return true
}
