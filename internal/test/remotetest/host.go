package remotetest

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// host is a server with lines that can fail: its own to the engine, and by its doors, which it advertises, those of
// others to it. A call to an address of the Instance itself always reaches it.
type host struct {
	*Instance
	engine Cable
	doors  Cable // for HTTP and for streams
}

// serveHosts starts two servers over a journal with one shard: the first is active, the second stands by.
func serveHosts(t testing.TB, e Engine, journal string) (hosts [2]*host) {
	t.Helper()
	for i, role := range []string{"ready", "standby"} {
		ports := busy.Ports(t, 2)
		h := &host{doors: Cable{NewProxy(t, "127.0.0.1", ports[0]), NewProxy(t, "127.0.0.1", ports[1])}}
		var at string
		at, h.engine = e.Cable(t, journal)
		h.Instance = ServeAt(t, nil, ports[0], ports[1], "--journal", at, "--shards", "1",
			"--advertise-http", "http://"+h.doors[0].Addr, "--advertise-grpc", h.doors[1].Addr)
		h.Becomes(role)
		hosts[i] = h
	}
	return hosts
}

// Kill is kill -9: the doors refuse what comes.
func (h *host) Kill() {
	h.doors.Refuse(h, true)
	h.Instance.Kill()
}

// Start starts the server again.
func (h *host) Start() {
	h.doors.Refuse(h, false)
	h.Instance.Start()
}

// outside is the host for clients that come by its doors.
func (h *host) outside() *Instance {
	return &Instance{TB: h.TB, http: h.doors[0].Addr, grpc: h.doors[1].Addr}
}

// ownerOf waits until one of two hosts answers for the shard, and returns it and the other one.
func ownerOf(t testing.TB, hosts [2]*host) (owner, other *host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	found := make(chan int, len(hosts))
	for i, h := range hosts {
		go func() {
			for ctx.Err() == nil && !h.owns(ctx) {
				<-time.After(10 * time.Millisecond)
			}
			found <- i
		}()
	}
	i := <-found
	if ctx.Err() != nil {
		t.Fatal("no server answers for the shard")
	}
	return hosts[i], hosts[1-i]
}

// owns reports whether a server answers as the owner of a shard.
func (s *Instance) owns(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	a, err := s.call(ctx, http.MethodGet, "/readyz?role=active", "")
	return err == nil && a.status == http.StatusOK
}

// fault is one that comes to the owner of the shard. It lasts until end is called.
type fault struct {
	name  string
	moves bool // the other server takes the shard over meanwhile
	deaf  bool // the server does not answer
	// What the agents do meanwhile: so many operations, each with so much time for its answer.
	work       int
	patience   time.Duration
	begin, end func(h, other *host)
}

// faults are all. A line that is slow by more than a second delays each sign of life of the server beyond the next one.
var faults = []fault{
	{
		name: "kill9", moves: true, deaf: true, work: 300, patience: time.Second,
		begin: func(h, _ *host) { h.Kill() }, end: func(h, _ *host) { h.Start() },
	},
	{
		name: "sigstop", moves: true, deaf: true, work: 300, patience: time.Second,
		begin: func(h, _ *host) { h.signal(launch.Stop) }, end: func(h, _ *host) { h.signal(launch.Continue) },
	},
	lineFault("vanish", true, 300, time.Second, func(c Cable) { c.Cut(true) }),
	lineFault("half_open_server", false, 300, time.Second, func(c Cable) { c.Halve(Far) }),
	lineFault("half_open_engine", false, 300, time.Second, func(c Cable) { c.Halve(Near) }),
	lineFault("slow", false, 100, 5*time.Second, func(c Cable) { c.Slow(200 * time.Millisecond) }),
	lineFault("slow_beat", false, 30, 20*time.Second, func(c Cable) { c.Slow(1200 * time.Millisecond) }),
}

// lineFault is one of all lines between a host and the engine, and between it and the other server.
func lineFault(name string, moves bool, work int, patience time.Duration, begin func(Cable)) fault {
	lines := func(h, other *host) Cable { return slices.Concat(h.engine, h.doors, other.doors) }
	return fault{
		name: name, moves: moves, work: work, patience: patience,
		begin: func(h, other *host) { begin(lines(h, other)) },
		end:   func(h, other *host) { lines(h, other).Mend() },
	}
}

// comeTo lets a fault come to the owner of the shard, and end when work has returned and every call that was begun
// meanwhile has ended.
func (f *fault) comeTo(t testing.TB, hosts [2]*host, work func()) {
	t.Helper()
	owner, other := ownerOf(t, hosts)
	f.begin(owner, other)
	asked := []*Instance{other.Instance}
	if !f.deaf {
		asked = append(asked, owner.Instance)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		callsEnd(t, f.name, asked)
	}()
	if f.moves {
		busy.Wait(t, "the other server to take over: "+f.name, func() bool { return other.owns(t.Context()) })
	} else {
		ownerOf(t, hosts)
	}
	work()
	<-ended
	f.end(owner, other)
	busy.Wait(t, "both servers to be ready after "+f.name, func() bool {
		return hosts[0].Status(http.MethodGet, "/readyz") == 200 && hosts[1].Status(http.MethodGet, "/readyz") == 200
	})
}

// callsEnd asks servers that cannot know what has become of the others and of the engine. Each call has an answer
// before its client loses patience (see plain): in the time that it wants to wait, and eight seconds.
func callsEnd(t testing.TB, during string, servers []*Instance) {
	var asking sync.WaitGroup
	for _, s := range servers {
		for _, q := range []Question{
			{"read", http.MethodGet, "/v1/keys/aside", ""},
			{"grant", http.MethodPost, "/v1/leases", `{"agent":"aside","claims":[{"key":"aside"}]}`},
			{
				"wait", http.MethodPost, "/v1/leases",
				`{"agent":"aside","on_conflict":"wait","wait_ms":2000,"claims":[{"key":"aside"}]}`,
			},
			{"renewal", http.MethodPost, "/v1/leases/l_none/renew", "{}"},
			{"page of events", http.MethodGet, "/v1/events?limit=1", ""},
			{"readiness", http.MethodGet, "/readyz", ""},
		} {
			asking.Go(func() {
				began := time.Now()
				if _, _, err := s.fetch(t.Context(), q.method, q.path, q.body); err != nil {
					t.Errorf("%s: a %s at %s has no answer after %v: %v", during, q.what, s.http, time.Since(began), err)
				}
			})
		}
	}
	asking.Wait()
}
