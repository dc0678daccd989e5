package remotetest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
)

var (
	sharesTime = flag.Duration("shares", 40*time.Second, "how long the agents of HistoryOfShares work")

	// The ttl of a seat, two looks at it, and the time to open a journal are 6 s. What other suites beside this one add
	// is no promise.
	unownedLimit = flag.Duration(
		"unowned", 8*time.Second, "the longest time that a shard has no owner; 6s on a machine that does nothing else",
	)

	// An answer waits besides for the agents' requests that have gathered.
	unansweredLimit = flag.Duration("unanswered", 10*time.Second, "the longest time without an answer in a namespace")
)

const (
	shareServers    = 3
	shareNamespaces = 50
	shareShards     = 16
)

// HistoryOfShares lets 200 agents work in 50 namespaces of 16 shards over three servers, while these are killed,
// paused, cut off from the engine, stopped in order and started again, and a fourth one comes and goes. Each
// namespace has a history of its own, to which every answer of every server must fit, and some move from shard to
// shard. None is without an owner for long, no more shards move than a fault explains, and in the end every
// server knows the owner of every namespace.
func HistoryOfShares(t *testing.T, e Engine) {
	through, cable := e.Cable(t, "shares")
	servers := make([]*Instance, shareServers)
	var addresses []string
	for i := range servers {
		url := e.URL("shares")
		if i == 0 {
			url = through // this one can be cut off
		}
		servers[i] = Serve(t, url, "--shards", fmt.Sprint(shareShards))
		addresses = append(addresses, servers[i].http)
	}
	for _, s := range servers {
		s.Becomes("ready")
	}
	fourth := Serve(t, e.URL("shares"), "--shards", fmt.Sprint(shareShards))
	fourth.Becomes("ready")
	drain(t, fourth)

	var crowds []*traffic.Crowd
	records := make([]*history.Recorder, shareNamespaces)
	for i := range records {
		records[i] = history.NewRecorder()
		site := &traffic.Site{Patience: time.Second, Namespace: interlock.Namespace(namespace(i))}
		first := i % len(addresses)
		site.Move(addresses[first], addresses[(first+1)%3], addresses[(first+2)%3])
		crowd, err := traffic.Start(t.Context(), site, records[i], uint64(i), traffic.Small)
		if err != nil {
			t.Fatal(err)
		}
		crowds = append(crowds, crowd)
	}
	var down atomic.Pointer[Instance] // the server with a fault
	watch := watchShares(t, servers, fourth, &down)

	endMoves := moveAround(t, servers, &down)

	work := func() { worked(t.Context(), records[0], 100) }
	faults := []struct {
		name string
		owns bool // the server still answers for its shards
		do   func(s *Instance)
	}{
		{"kill9", false, func(s *Instance) {
			s.Kill()
			work()
			s.Start()
		}},
		{"sigstop", false, func(s *Instance) {
			s.signal(launch.Stop)
			work()
			s.signal(launch.Continue)
		}},
		{"drain", true, func(s *Instance) {
			drain(t, s)
			work()
			s.Start()
		}},
		{"cut", false, func(*Instance) {
			cable.Cut(true)
			work()
			cable.Cut(false)
		}},
		{"add", true, func(*Instance) {
			fourth.Start()
			fourth.Becomes("ready")
			work()
			watch.fault("the end of add", fourth)
			drain(t, fourth)
		}},
	}
	done := map[string]int{}
	for began, i := time.Now(), 0; time.Since(began) < *sharesTime || i < len(faults); i++ {
		fault := faults[i%len(faults)]
		s := servers[rand.IntN(len(servers))]
		switch fault.name {
		case "cut":
			s = servers[0]
		case "add":
			s = fourth
		}
		watch.fault(fault.name, s)
		down.Store(s)
		if !fault.owns {
			watch.deaf.Store(s)
		}
		fault.do(s)
		watch.deaf.Store(nil)
		busy.Wait(t, "all servers to answer for all shards after "+fault.name, func() bool {
			for _, s := range servers {
				if s.Status(http.MethodGet, "/readyz") != http.StatusOK {
					return false
				}
			}
			return true
		})
		// A second fault in the time of the first one would double the time without an owner.
		over := time.Now()
		busy.Wait(t, "an answer in every namespace after "+fault.name, func() bool { return watch.answeredSince(over) })
		down.Store(nil)
		done[fault.name]++
	}
	begun, refused := endMoves()
	t.Logf("%d moves of %d namespaces have begun, and %d were refused", begun, movedNamespaces, refused)
	if t.Attr("count.namespace_moves", fmt.Sprint(begun)); begun == 0 {
		t.Error("no namespace has moved")
	}
	busy.Wait(t, "every server to name the owner of every namespace", func() bool { return allKnowOwners(t, servers) })
	watch.end()
	operations := 0
	var stopping sync.WaitGroup
	for i, crowd := range crowds {
		stopping.Go(func() {
			if err := crowd.Stop(t.Context()); err != nil {
				t.Errorf("namespace %d: %v", i, err)
			}
		})
	}
	stopping.Wait()
	for i := range records {
		if i < movedNamespaces {
			records[i].VerifyResults(t) // indexes of several journals are not in one order
		} else {
			records[i].Verify(t)
		}
		operations += len(records[i].Ops())
		records[i] = nil // what it took to check a long history is free for the next one
	}
	t.Logf("%d operations in %d histories", operations, shareNamespaces)
	watch.verify(append(servers, fourth))
	for _, fault := range faults {
		if t.Attr("count.faults."+fault.name, fmt.Sprint(done[fault.name])); done[fault.name] == 0 {
			t.Errorf("nothing was done: %s", fault.name)
		}
	}
}

// drain stops a server in order.
func drain(t testing.TB, s *Instance) {
	t.Helper()
	s.signal(syscall.SIGTERM)
	if code := s.Ends(); code != 0 {
		t.Errorf("a server that was stopped in order ended with code %d", code)
	}
}
