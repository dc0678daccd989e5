package remotetest

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// earlier is the commit of the version that RollingUpgrade begins with: the last one that writes record.Format 1.
const earlier = "5a33b8b9951d1ebcc972586a84cb94d7bb9650a4"

// buildEarlier builds the program of that commit from the history of this repository.
func buildEarlier(t *testing.T) string {
	t.Helper()
	known := exec.Command("git", "-C", tools.Root(), "cat-file", "-e", earlier+"^{commit}")
	if out, err := known.CombinedOutput(); err != nil {
		t.Fatalf(
			"the history of this checkout lacks commit %s, the version to upgrade from (%v: %s): run git fetch --unshallow",
			earlier, err, out,
		)
	}
	dir := t.TempDir()
	source, archive, path := filepath.Join(dir, "source"), filepath.Join(dir, "tar"), filepath.Join(dir, "interlock")
	for _, args := range [][]string{
		{"mkdir", source},
		{"git", "-C", tools.Root(), "archive", "--output", archive, "--format", "tar", earlier},
		{"tar", "-x", "-f", archive, "-C", source},
		{"go", "build", "-C", source, "-o", path, "./cmd/interlock"},
		{"rm", "-r", source, archive},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	return path
}

// RollingUpgrade exchanges three servers of an earlier version for this one, one after the other, and then back, while
// agents work and others hold leases in twenty namespaces, by HTTP and on session streams. No lease is lost, and each
// is renewed all the time by way of any server. After the upgrade all streams lead to the owners of their shards.
func RollingUpgrade(t *testing.T, e Engine) {
	before := buildEarlier(t)
	now := launchtest.Binary(t)
	var servers []*Instance
	var addresses []string
	for range shareServers {
		ports := busy.Ports(t, 2)
		flags := []string{"--journal", e.URL("rolling"), "--shards", "16"}
		s := newInstance(t, nil, before, ports[0], ports[1], flags)
		s.Start()
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
	held := hold(t, servers)
	exchange := func(path string) {
		for _, s := range servers {
			drain(t, s)
			s.path = path
			s.Start()
			busy.Wait(t, "the new server to own a shard", func() bool {
				return s.Status(http.MethodGet, "/readyz?role=active") == http.StatusOK
			})
			worked(t.Context(), record, 300)
		}
		held.verify(t)
	}
	exchange(now)
	busy.Wait(t, "all streams to lead to owners", func() bool {
		for _, s := range servers {
			if s.Metric("interlock_relayed_streams") != "0" {
				return false
			}
		}
		return true
	})
	exchange(before)
	held.stop()
	if err := crowd.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	record.Verify(t)
}

// heldLeases is leases that are kept while servers change: one of HTTP in each namespace, renewed by way of the
// servers in turn, and one of a session in each.
type heldLeases struct {
	servers  []*Instance
	leases   []answer
	clients  []*client.Client
	sessions []*client.Lease
	stop     func()
}

const (
	heldNamespaces = 20
	heldTTL        = 20 * time.Second
)

func hold(t *testing.T, servers []*Instance) *heldLeases {
	t.Helper()
	h := &heldLeases{servers: servers, leases: make([]answer, heldNamespaces)}
	for i := range h.leases {
		busy.Wait(t, "a lease in each namespace", func() (ok bool) { // its shard may be on the move
			var err error
			h.leases[i], err = servers[i%len(servers)].as(namespace(i)).call(
				t.Context(), http.MethodPost, "/v1/leases", fmt.Sprintf(
					`{"agent":"holder","claims":[{"key":"held"}],"ttl_ms":%d}`, heldTTL.Milliseconds(),
				),
			)
			return err == nil && h.leases[i].status == http.StatusOK
		})
		cfg := client.Config{
			Namespace: interlock.Namespace(namespace(i)), Agent: "session", SessionTTL: heldTTL, RetryFor: 30 * time.Second,
		}
		for n := range servers {
			cfg.Addrs = append(cfg.Addrs, servers[(i+n)%len(servers)].grpc)
		}
		c, err := client.Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		lease, err := c.Acquire(t.Context(), client.Request{Keys: []interlock.Key{"held:session"}})
		if err != nil {
			t.Fatal(err)
		}
		h.clients, h.sessions = append(h.clients, c), append(h.sessions, lease)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var renewing sync.WaitGroup
	for i := range h.leases {
		var via []*Instance
		for _, s := range servers {
			via = append(via, s.as(namespace(i)))
		}
		renewing.Go(func() { renew(ctx, t, h.leases[i].Lease.ID, i, via) })
	}
	h.stop = sync.OnceFunc(func() {
		cancel()
		renewing.Wait()
		for _, c := range h.clients {
			short, end := context.WithTimeout(context.Background(), 5*time.Second)
			_ = c.Close(short)
			end()
		}
	})
	t.Cleanup(h.stop)
	return h
}

// renew keeps a lease by way of servers in turn, from the one with this number on.
func renew(ctx context.Context, t *testing.T, lease string, n int, via []*Instance) {
	for ; ; n++ {
		s := via[n%len(via)]
		a, err := s.call(ctx, http.MethodPost, "/v1/leases/"+lease+"/renew", "{}")
		if err == nil && a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
			t.Errorf("the lease of %s: %+v", s.namespace, a)
			return
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// verify compares all leases with those that were granted.
func (h *heldLeases) verify(t *testing.T) {
	t.Helper()
	for i := range h.leases {
		busy.Wait(t, "the lease of every namespace", func() bool {
			a, err := h.servers[0].as(namespace(i)).call(
				t.Context(), http.MethodPost, "/v1/leases/"+h.leases[i].Lease.ID+"/renew", "{}",
			)
			return err == nil && a.status == http.StatusOK && a.Lease.Fence == h.leases[i].Lease.Fence
		})
		l := h.sessions[i]
		if err := l.Err(); err != nil {
			t.Errorf("the lease of the session of namespace %d: %v", i, err)
		}
		if err := h.clients[i].CheckFence(t.Context(), l.Key(), l.Fence()); err != nil {
			t.Errorf("its fence: %v", err)
		}
	}
}

func namespace(i int) string { return fmt.Sprint("tenant-", i) }

// as returns the server as it is asked by a client of a namespace.
func (s *Instance) as(namespace string) *Instance {
	c := *s
	c.namespace = namespace
	return &c
}
