package remotetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
)

// movedNamespaces is how many of the namespaces of HistoryOfShares move from shard to shard all the time. Faults meet
// moves at any step, so one of these may wait for two owners in turn.
const movedNamespaces = 8

// movesFor is how many limits of an owner's time a namespace that moves may be without an answer.
const movesFor = 2

// moveEvery is the time between two moves.
const moveEvery = 300 * time.Millisecond

// moveAround moves namespaces by way of servers without a fault, until the function that it returns is called. That
// returns how many moves have begun, and how many were refused, when none is under way any more.
func moveAround(t testing.TB, servers []*Instance, down *atomic.Pointer[Instance]) (end func() (begun, refused int)) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	begun, refused := 0, 0
	go func() {
		defer close(ended)
		tick := time.NewTicker(moveEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			s := servers[rand.IntN(len(servers))]
			if s == down.Load() {
				continue
			}
			limit, cancel := context.WithTimeout(ctx, 2*time.Second)
			body := fmt.Sprintf(`{"namespace":%q,"shard":%d}`, namespace(rand.IntN(movedNamespaces)), rand.IntN(shareShards))
			status, text, err := s.fetch(limit, http.MethodPost, "/v1/moves", body)
			cancel()
			switch {
			case err == nil && status == http.StatusOK && strings.Contains(string(text), `"moving"`):
				begun++
			case err == nil && status != http.StatusOK:
				refused++
			}
		}
	}()
	return func() (int, int) {
		stop()
		<-ended
		busy.Wait(t, "the end of all moves", func() bool {
			for _, s := range servers {
				status, text, err := s.fetch(t.Context(), http.MethodGet, "/v1/shards", "")
				if err != nil || status != http.StatusOK || strings.Contains(string(text), `"moves"`) {
					return false
				}
			}
			return true
		})
		return begun, refused
	}
}
