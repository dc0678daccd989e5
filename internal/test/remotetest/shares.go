package remotetest

import (
	"context"
	"errors"
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
	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
)

var sharesTime = flag.Duration("shares", 40*time.Second, "how long the agents of HistoryOfShares work")

const (
	shareServers    = 3
	shareNamespaces = 50

	// unownedLimit is the longest time in which a namespace may have no server that answers for it: the ttl of a seat,
	// two looks at it, the time to open a journal, and what a busy machine adds. The last part is not a promise.
	unownedLimit = 8 * time.Second
)

// HistoryOfShares lets 200 agents work in 50 namespaces of 16 shards over three servers, while these are killed,
// paused, cut off from the engine, stopped in order and started again. Each namespace has a history of its own,
// to which every answer of every server must fit, and none is without an owner for long.
func HistoryOfShares(t *testing.T, e Engine) {
	through, cut := e.Cable(t, "shares")
	servers := make([]*Instance, shareServers)
	var addresses []string
	for i := range servers {
		url := e.URL("shares")
		if i == 0 {
			url = through // this one can be cut off
		}
		servers[i] = Serve(t, url, "--shards", "16")
		addresses = append(addresses, servers[i].http)
	}
	for _, s := range servers {
		s.Becomes("ready")
	}
	var down atomic.Pointer[Instance] // the server with a fault

	var crowds []*traffic.Crowd
	records := make([]*history.Recorder, shareNamespaces)
	for i := range records {
		records[i] = history.NewRecorder()
		site := &traffic.Site{Patience: time.Second, Namespace: interlock.Namespace(fmt.Sprint("tenant-", i))}
		first := i % len(addresses)
		site.Move(addresses[first], addresses[(first+1)%3], addresses[(first+2)%3])
		crowd, err := traffic.Start(t.Context(), site, records[i], uint64(i), traffic.Small)
		if err != nil {
			t.Fatal(err)
		}
		crowds = append(crowds, crowd)
	}
	watched, unwatch := context.WithCancel(t.Context())
	longest := make([]time.Duration, shareNamespaces)
	var watching sync.WaitGroup
	for i := range longest {
		watching.Go(func() { longest[i] = silence(watched, servers, &down, i) })
	}

	faults := []struct {
		name string
		do   func(s *Instance)
	}{
		{"kill9", func(s *Instance) {
			s.Kill()
			worked(t.Context(), records[0], 200)
			s.Start()
		}},
		{"sigstop", func(s *Instance) {
			s.signal(syscall.SIGSTOP)
			worked(t.Context(), records[0], 200)
			s.signal(syscall.SIGCONT)
		}},
		{"drain", func(s *Instance) {
			s.signal(syscall.SIGTERM)
			if code := s.Ends(); code != 0 {
				t.Errorf("a server that was stopped in order ended with code %d", code)
			}
			worked(t.Context(), records[0], 200)
			s.Start()
		}},
		{"cut", func(*Instance) {
			cut(true)
			worked(t.Context(), records[0], 200)
			cut(false)
		}},
	}
	done := map[string]int{}
	for began, i := time.Now(), 0; time.Since(began) < *sharesTime || i < len(faults); i++ {
		fault := faults[i%len(faults)]
		s := servers[rand.IntN(len(servers))]
		if fault.name == "cut" {
			s = servers[0]
		}
		down.Store(s)
		fault.do(s)
		WaitFor(t, "all servers to answer for all shards after "+fault.name, func() bool {
			for _, s := range servers {
				if s.Status(http.MethodGet, "/readyz") != http.StatusOK {
					return false
				}
			}
			return true
		})
		down.Store(nil)
		done[fault.name]++
	}
	unwatch()
	watching.Wait()
	for i, crowd := range crowds {
		if err := crowd.Stop(t.Context()); err != nil {
			t.Errorf("namespace %d: %v", i, err)
		}
		records[i].Verify(t)
	}
	worst := time.Duration(0)
	for i, d := range longest {
		if worst = max(worst, d); d > unownedLimit {
			t.Errorf("namespace %d was not answered for %v", i, d)
		}
	}
	t.Logf("no namespace was without an answer for longer than %v", worst)
	for _, fault := range faults {
		if t.Attr("count.faults."+fault.name, fmt.Sprint(done[fault.name])); done[fault.name] == 0 {
			t.Errorf("nothing was done: %s", fault.name)
		}
	}
}

// RollingUpgrade exchanges three servers one after the other, as an upgrade does, while agents work and others hold
// leases in twenty namespaces. No lease is lost, and each is renewed all the time by way of any server.
func RollingUpgrade(t *testing.T, e Engine) {
	const namespaces = 20
	var servers []*Instance
	var addresses []string
	for range shareServers {
		s := Serve(t, e.URL("rolling"), "--shards", "16")
		servers, addresses = append(servers, s), append(addresses, s.http)
	}
	for _, s := range servers {
		s.Becomes("ready")
	}
	record := history.NewRecorder()
	site := &traffic.Site{Patience: time.Second}
	site.Move(addresses...)
	crowd, err := traffic.Start(t.Context(), site, record, 9, traffic.Full)
	if err != nil {
		t.Fatal(err)
	}
	leases := make([]answer, namespaces)
	for i := range leases {
		WaitFor(t, "a lease in each namespace", func() bool { // its shard may be on the move
			leases[i], err = servers[i%shareServers].as(namespace(i)).call(
				t.Context(), http.MethodPost, "/v1/leases", `{"agent":"holder","claims":[{"key":"held"}],"ttl_ms":20000}`,
			)
			return err == nil && leases[i].status == http.StatusOK
		})
	}
	stop, cancel := context.WithCancel(t.Context())
	var renewing sync.WaitGroup
	for i := range leases {
		renewing.Go(func() {
			for n := i; stop.Err() == nil; n++ {
				a, err := servers[n%shareServers].as(namespace(i)).call(
					stop, http.MethodPost, "/v1/leases/"+leases[i].Lease.ID+"/renew", "{}",
				)
				if err == nil && a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
					t.Errorf("the lease of namespace %d: %+v", i, a)
					return
				}
				select {
				case <-time.After(500 * time.Millisecond):
				case <-stop.Done():
				}
			}
		})
	}
	for _, s := range servers {
		s.signal(syscall.SIGTERM)
		if code := s.Ends(); code != 0 {
			t.Errorf("a server that was stopped in order ended with code %d", code)
		}
		s.Start()
		s.Becomes("ready")
		worked(t.Context(), record, 300)
	}
	cancel()
	renewing.Wait()
	for i := range leases {
		WaitFor(t, "the lease of every namespace", func() bool {
			a, err := servers[0].as(namespace(i)).call(
				t.Context(), http.MethodPost, "/v1/leases/"+leases[i].Lease.ID+"/renew", "{}",
			)
			return err == nil && a.status == http.StatusOK && a.Lease.Fence == leases[i].Lease.Fence
		})
	}
	if err := crowd.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	record.Verify(t)
}

func namespace(i int) string { return fmt.Sprint("tenant-", i) }

// as returns the server as it is asked by a client of a namespace.
func (s *Instance) as(namespace string) *Instance {
	c := *s
	c.namespace = namespace
	return &c
}

// silence asks for a key of a namespace again and again, at the servers without a fault, and returns the longest time
// without an answer.
func silence(ctx context.Context, servers []*Instance, down *atomic.Pointer[Instance], n int) (longest time.Duration) {
	last := time.Now()
	for i := n; ctx.Err() == nil; i++ {
		s := servers[i%len(servers)]
		if s == down.Load() {
			continue
		}
		limit, cancel := context.WithTimeout(ctx, 2*time.Second)
		r, err := http.NewRequestWithContext(limit, http.MethodGet, "http://"+s.http+"/v1/keys/lock/0", nil)
		if err != nil {
			s.Error(err)
		}
		r.Header.Set("Interlock-Namespace", fmt.Sprint("tenant-", n))
		got, err := plain.Do(r)
		if err == nil {
			err = got.Body.Close()
			if got.StatusCode != http.StatusOK {
				err = errors.New(got.Status)
			}
		}
		cancel()
		if now := time.Now(); err == nil {
			longest = max(longest, now.Sub(last))
			last = now
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return max(longest, time.Since(last))
}
