package remotetest

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
)

var (
	failovers = flag.Int("failovers", 4, "how often FailOver takes the active server away")
	deathList = flag.String("deaths", "kill,pause,vanish", "how FailOver takes it away, in turn")
)

// deaths are what FailOver does to the active server: one that closes its connections, one that leaves them open, and
// one after which nothing comes from the machine or reaches it.
var deaths = map[string]struct{ die, back func(h *host) }{
	"kill":   {func(h *host) { h.Kill() }, func(h *host) { h.Start() }},
	"pause":  {func(h *host) { h.signal(launch.Stop) }, func(h *host) { h.signal(launch.Continue) }},
	"vanish": {func(h *host) { h.machine().Cut(true) }, func(h *host) { h.machine().Mend() }},
}

// machine is all lines of the host.
func (h *host) machine() Cable { return slices.Concat(h.engine, h.doors) }

// FailOver takes the active server away in several ways. Each time the standby takes over within twenty seconds, and
// clients that know both addresses follow by themselves: their leases stay with the same fence, waiters stay in line,
// and new fences are higher than all before.
func FailOver(t *testing.T, e Engine) {
	hosts := serveHosts(t, e, "failover")
	active, standby := hosts[0], hosts[1]
	// knows reports whether a server names another one as the active one.
	knows := func(s, owner *host) bool {
		a := s.get("/readyz?role=active")
		return a.status == 503 && a.Code == "not_owner" && a.Active.HTTP == "http://"+owner.doors[0].Addr &&
			a.Active.GRPC == owner.doors[1].Addr
	}
	busy.Wait(t, "the standby to name the active server", func() bool { return knows(standby, active) })
	if a := standby.get("/healthz"); a.status != 200 || a.Role != "standby" {
		t.Fatalf("the standby's health: %+v", a)
	}
	if a := standby.get("/readyz"); a.status != 200 {
		t.Fatalf("the standby is not ready to forward: %+v", a)
	}
	line := begin(t, []*Instance{standby.Instance}, "status").prints()
	if !strings.HasPrefix(line, "server      active, ") {
		t.Fatalf("the status by way of the standby begins with %q", line)
	}
	seen := begin(t, []*Instance{standby.Instance, active.Instance}, "status", "-o", "json").prints()
	if !strings.Contains(seen, `"kind":"`+e.Kind()+`"`) {
		t.Fatalf("the status of both is %s", seen)
	}

	// A client is outside of the machine that vanishes.
	holder := dial(t, "holder", active.outside(), standby.outside())
	waiter := dial(t, "waiter", standby.outside(), active.outside())
	cycler := dial(t, "busy", active.outside(), standby.outside())
	ctx := t.Context()
	held, err := holder.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:1"}})
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	var granted *client.Lease
	go func() {
		var err error
		granted, err = waiter.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:1"}, OnConflict: interlock.Wait})
		waited <- err
	}()
	fence := interlock.Fence(0)
	cycle := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		l, err := cycler.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:2"}})
		if err != nil {
			t.Fatalf("acquire: %v", err)
		}
		if l.Fence() <= fence {
			t.Fatalf("fence %d after %d", l.Fence(), fence)
		}
		fence = l.Fence()
		if err := l.Release(ctx, client.Outcome{}); err != nil {
			t.Fatalf("release: %v", err)
		}
	}
	moved, followed := map[string][]time.Duration{}, map[string][]time.Duration{}
	kinds := strings.Split(*deathList, ",")
	for round := range *failovers {
		cycle()
		kind := kinds[round%len(kinds)]
		death, known := deaths[kind]
		if !known {
			t.Fatalf("-deaths: there is no %q", kind)
		}
		death.die(active)
		began := time.Now()
		ready := make(chan time.Duration, 1)
		go func() {
			standby.Becomes("ready")
			ready <- time.Since(began)
		}()
		cycle()
		followed[kind] = append(followed[kind], time.Since(began))
		moved[kind] = append(moved[kind], <-ready)
		death.back(active)
		active.Becomes("standby")
		active, standby = standby, active
		busy.Wait(t, "the former owner to name the new one", func() bool { return knows(standby, active) })
		if err := held.Err(); err != nil {
			t.Fatalf("round %d: the lease was lost: %v", round, err)
		}
		select {
		case err := <-waited:
			t.Fatalf("round %d: the waiter left the line: %v", round, err)
		default:
		}
	}
	before := held.Fence()
	if err := held.Release(ctx, client.Outcome{}); err != nil {
		t.Fatalf("release after all that: %v", err)
	}
	if err := <-waited; err != nil {
		t.Fatalf("the waiter: %v", err)
	}
	if granted.Fence() <= before {
		t.Errorf("fence %d after %d", granted.Fence(), before)
	}
	for _, kind := range slices.Sorted(maps.Keys(moved)) {
		reportTimes(t, e.Kind(), kind+": the standby is ready", moved[kind])
		reportTimes(t, e.Kind(), kind+": a client has a lease", followed[kind])
	}
}

// reportTimes prints a row for docs/performance.md, and fails if a fail-over took longer than twenty seconds.
func reportTimes(t *testing.T, engine, what string, d []time.Duration) {
	slices.Sort(d)
	row := fmt.Sprintf("| %s | %s | %d |", engine, what, len(d))
	for _, percent := range []int{50, 90, 99, 100} {
		row += fmt.Sprintf(" %.2f |", d[(len(d)*percent+99)/100-1].Seconds())
	}
	t.Log(row)
	if longest := d[len(d)-1]; longest > 20*time.Second {
		t.Errorf("%s: %v, want less than 20s", what, longest)
	}
}

// HandOver checks that a server that is stopped in order leaves its seat at once.
func HandOver(t *testing.T, e Engine) {
	at := e.URL("handover")
	one, two := serveTwo(t, at, at)
	began := time.Now()
	one.signal(syscall.SIGTERM)
	two.Becomes("ready")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := one.cmd.Wait(); err != nil {
		t.Errorf("the first server: %v", err)
	}
	one.cmd = nil
}

// CutOff cuts the active server off from the engine, while its clients still reach it. From the moment
// another one has answered, it answers nothing: no grant, no renewal, no read.
func CutOff(t *testing.T, e Engine) {
	for _, what := range []struct {
		name string
		asks []Question
	}{{"Looking", Looking}, {"Granting", granting}} {
		t.Run(what.name, func(t *testing.T) {
			through, cable := e.Cable(t, what.name)
			old, next := serveTwo(t, through, e.URL(what.name))
			OldOwnerIsSilent(t, old, next, what.asks, cable.Cut)
		})
	}
}

// PausedOwnerIsSilent asks a server that stood still while another one took the shard over when it continues.
// All calls are sent after the new owner's first answer, so each answer is a refusal.
func PausedOwnerIsSilent(t *testing.T, e Engine) {
	at := e.URL("paused")
	old, next := serveTwo(t, at, at)
	old.alone = true
	ctx := t.Context()
	lease, err := old.call(ctx, http.MethodPost, "/v1/leases", `{"agent":"holder","claims":[{"key":"account:1"}]}`)
	if err != nil || lease.status != 200 {
		t.Fatalf("acquire: %+v, %v", lease, err)
	}
	questions := slices.Concat(Looking, granting, []Question{
		{"look at its readiness", http.MethodGet, "/readyz?role=active", ""},
		{"read of the keys that sign fences", http.MethodGet, "/v1/fences/keys", ""},
		{"rotation of the keys that sign fences", http.MethodPost, "/v1/fences/keys/rotate", "{}"},
		{"read of the events", http.MethodGet, "/v1/events", ""},
		{"signature", http.MethodPost, "/v1/leases/LEASE/statement", "{}"},
	})
	old.signal(launch.Stop)
	next.Becomes("ready")
	if a, err := next.call(ctx, http.MethodPost, "/v1/fences/keys/rotate", "{}"); err != nil || a.status != 200 {
		t.Fatalf("the next owner: %+v, %v", a, err)
	}
	answers := make([]answer, len(questions))
	var asked sync.WaitGroup
	fill := strings.NewReplacer("LEASE", lease.Lease.ID, "FENCE", lease.Lease.Fence)
	for i, q := range questions {
		asked.Go(func() {
			var err error
			if answers[i], err = old.call(ctx, q.method, fill.Replace(q.path), fill.Replace(q.body)); err != nil {
				t.Errorf("%s: %v", q.what, err)
			}
		})
	}
	old.signal(launch.Continue)
	asked.Wait()
	for i, q := range questions {
		if answers[i].status != 503 {
			t.Errorf("the old owner answered a %s with %+v", q.what, answers[i])
		}
	}
}

// Question is a request that is repeated. LEASE and FENCE stand for those of a lease.
type Question struct{ what, method, path, body string }

// Those that change nothing are answered after a barrier only. They are asked apart from
// those that append, behind which they would wait and show nothing.
var (
	Looking = []Question{
		{"read", http.MethodGet, "/v1/keys/account:1", ""},
		{"renewal", http.MethodPost, "/v1/leases/LEASE/renew", "{}"},
		{"fence check", http.MethodPost, "/v1/fences/check", `{"key":"account:1","fence":"FENCE"}`},
	}
	granting = []Question{{"grant", http.MethodPost, "/v1/leases", `{"claims":[{"key":"account:2","mode":"shared"}]}`}}
)

// OldOwnerIsSilent cuts a server off while it is asked without pause, and checks that it sends
// no answer after the next owner's first.
func OldOwnerIsSilent(t *testing.T, old, next *Instance, questions []Question, cut func(bool)) {
	t.Helper()
	old.alone = true
	ctx := t.Context()
	lease, err := old.call(ctx, http.MethodPost, "/v1/leases", `{"agent":"holder","claims":[{"key":"account:1"}]}`)
	if err != nil || lease.status != 200 {
		t.Fatalf("acquire: %+v, %v", lease, err)
	}
	// Each asks the old owner again and again, and notes when it was answered last.
	last := make([]time.Time, len(questions))
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	var askers, asked []chan struct{}
	ask := func(last *time.Time, method, path, body string) {
		done, once := make(chan struct{}), make(chan struct{})
		askers, asked = append(askers, done), append(asked, once)
		go func() {
			defer close(done)
			first := sync.OnceFunc(func() { close(once) })
			for stop.Err() == nil {
				a, err := old.call(stop, method, path, body)
				if err == nil && a.status < 500 {
					*last = time.Now()
					first()
				}
			}
		}()
	}
	fill := strings.NewReplacer("LEASE", lease.Lease.ID, "FENCE", lease.Lease.Fence)
	for i, q := range questions {
		ask(&last[i], q.method, fill.Replace(q.path), fill.Replace(q.body))
	}
	for _, once := range asked {
		select {
		case <-once:
		case <-time.After(10 * time.Second):
			t.Fatal("not everything is answered before the cut: the test would show nothing")
		}
	}
	cut(true)
	next.Becomes("ready")
	first, err := next.call(ctx, http.MethodPost, "/v1/leases", `{"claims":[{"key":"account:2","mode":"shared"}]}`)
	if err != nil || first.status != 200 {
		t.Fatalf("the next owner: %+v, %v", first, err)
	}
	began := time.Now()
	// For as long as the old owner may try.
	timer := time.NewTimer(3 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	cut(false)
	old.Becomes("standby")
	cancel()
	for _, done := range askers {
		<-done
	}
	for i, q := range questions {
		if last[i].After(began) {
			t.Errorf("the old owner gave an answer to a %s %v after the new owner's first", q.what, last[i].Sub(began))
		}
	}
	if a := old.get("/v1/keys/account:1"); a.Code != "not_owner" {
		t.Errorf("the old owner in the end: %+v", a)
	}
	again, err := next.call(ctx, http.MethodPost, "/v1/leases/"+lease.Lease.ID+"/renew", "{}")
	if err != nil || again.status != 200 {
		t.Errorf("the lease at the new owner: %+v, %v", again, err)
	}
}
