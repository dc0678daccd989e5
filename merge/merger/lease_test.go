package merger

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge/train"
)

func TestLeaseRule(t *testing.T) {
	for _, c := range []struct {
		paths, name string
		want        bool
	}{
		{"migrations/**", "migrations/0001_x.sql", true},
		{"migrations/**", "migrations/a/b", true},
		{"migrations/**", "web/migrations/x", false},
		{"**/migrations/*.sql", "web/db/migrations/x.sql", true},
		{"**/migrations/*.sql", "migrations/x.sql", true},
		{"**/migrations/*.sql", "migrations/x.py", false},
		{"*.lock", "go.lock", true},
		{"*.lock", "a/go.lock", false},
		{"**", "any/thing", true},
		{"a/**/b/**/c", "a/x/b/y/z/c", true},
		{"a/**/b/**/c", "a/x/y/z/c", false},
	} {
		r, err := ParseLeaseRule(c.paths + "=k")
		if err != nil || r.Key != "k" || r.Matches(c.name) != c.want {
			t.Errorf("%s, %s: %v %v, want %v", c.paths, c.name, r.Matches(c.name), err, c.want)
		}
	}
	for _, bad := range []string{"x", "x=", "=k", "a//b=k", "[=k", "/a=k"} {
		if _, err := ParseLeaseRule(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

const migrationsKey interlock.Key = "migrations:web"

// leasing is a merger with a rule for migrations.
func (r *rig) leasing(agent string) Config {
	c := r.config(agent)
	c.Leases = []LeaseRule{{Paths: "migrations/**", Key: migrationsKey}}
	return c
}

// claiming submits with the claims that the target's document demands.
func (r *rig) claiming(s Submission, paths ...string) interlock.TaskID {
	r.t.Helper()
	claims, err := Claims(r.t.Context(), r.author, web, paths)
	if err != nil {
		r.t.Fatal(err)
	}
	task, err := r.author.Submit(r.t.Context(), client.TaskSpec{Queue: web.Queue(), Payload: s, Claims: claims})
	if err != nil {
		r.t.Fatal(err)
	}
	return task.ID
}

// A submission without the lease comes back. Those with it are in line one after the other, and others pass them.
func TestLeaseFromSubmitToLanding(t *testing.T) {
	r := newRig(t)
	gate := make(chan struct{})
	r.work(func(tree files) bool {
		if _, ok := tree["migrations/a"]; ok {
			<-gate
		}
		return true
	})
	r.start(r.leasing("merger"))
	for { // the rule is there once the merger has the seat
		if claims, err := Claims(t.Context(), r.author, web, []string{"migrations/a"}); err != nil {
			t.Fatal(err)
		} else if slices.Equal(claims, []interlock.Claim{{Key: migrationsKey, Mode: interlock.Exclusive}}) {
			break
		}
	}
	without := r.result(r.submit(Submission{ID: "none", Head: r.commit(r.begin, files{"migrations/x": "x\n"})}))
	if without.Reason != WhyPolicy || !strings.Contains(without.Message, "--key "+string(migrationsKey)) {
		t.Errorf("without the lease: %+v", without)
	}
	a := Submission{ID: "a", Head: r.commit(r.begin, files{"migrations/a": "a\n"})}
	first := r.claiming(a, "migrations/a")
	r.taken(first, a)
	second := r.claiming(Submission{ID: "b", Head: r.commit(r.begin, files{"migrations/b": "b\n"})}, "migrations/b")
	c := Submission{ID: "c", Head: r.commit(r.begin, files{"c": "c\n"})}
	third := r.claiming(c, "c")
	r.taken(third, c)
	for _, id := range []interlock.TaskID{first, second} {
		task, err := r.author.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if blocked := task.Blocker == migrationsKey; blocked != (id == second) {
			t.Errorf("task %v is %v, and waits for %q", id, task.State, task.Blocker)
		}
	}
	close(gate)
	for _, id := range []interlock.TaskID{first, second, third} {
		if o := r.result(id); o.Code != Landed {
			t.Errorf("%+v", o)
		}
	}
	if got := r.landings(); slices.Index(got, "a") > slices.Index(got, "b") {
		t.Errorf("landed %v", got)
	}
}

// While an agent holds the key to work on such files, no other one's submission lands there.
func TestLeaseOfAnAgentAtWork(t *testing.T) {
	r := newRig(t)
	r.work(good)
	r.start(r.leasing("merger"))
	worker := r.hire("worker")
	lease, err := worker.Acquire(t.Context(), client.Request{Keys: []interlock.Key{migrationsKey}})
	if err != nil {
		t.Fatal(err)
	}
	task, err := r.author.Submit(t.Context(), client.TaskSpec{
		Queue: web.Queue(), Payload: Submission{ID: "a", Head: r.commit(r.begin, files{"migrations/a": "a\n"})},
		Claims: []interlock.Claim{{Key: migrationsKey, Mode: interlock.Exclusive}},
	})
	if err != nil {
		t.Fatal(err)
	}
	other := r.result(r.submit(Submission{ID: "o", Head: r.commit(r.begin, files{"o": "o\n"})}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.author.Await(ctx, task.ID); ctx.Err() == nil || other.Code != Landed {
		t.Errorf("it has ended while an agent holds the key: %v; the other one: %+v", err, other)
	}
	if err := lease.Release(t.Context(), client.Outcome{}); err != nil {
		t.Fatal(err)
	}
	if o := r.result(task.ID); o.Code != Landed {
		t.Errorf("%+v", o)
	}
}

// A submission with a lease that is lost leaves the line; the others are planned anew.
func TestLostLeaseDoesNotLand(t *testing.T) {
	r := newRig(t)
	m, err := New(r.leasing("merger"))
	if err != nil {
		t.Fatal(err)
	}
	lease, err := r.author.Acquire(t.Context(), client.Request{Keys: []interlock.Key{migrationsKey}})
	if err != nil {
		t.Fatal(err)
	}
	l := &line{Merger: m, train: train.New(train.Config{}), records: map[train.ID]*entry{
		"a": {paths: []string{"migrations/a"}, lease: lease}, "b": {paths: []string{"b"}},
	}}
	outcomes := []train.Outcome{{ID: "a", Reason: train.Landed}, {ID: "b", Reason: train.Landed}}
	if leases, ok := l.holds(outcomes); !ok || !slices.Equal(leases, []interlock.LeaseID{lease.ID()}) {
		t.Errorf("while it is held: %v, %v", leases, ok)
	}
	if err := lease.Release(t.Context(), client.Outcome{}); err != nil {
		t.Fatal(err)
	}
	if leases, ok := l.holds(outcomes); ok || len(leases) != 0 || l.records["a"] != nil || l.records["b"] == nil {
		t.Errorf("after its end: %v, %v, %v", leases, ok, l.records)
	}
	// The server refuses to stage it, too.
	if _, err := r.author.Commit(t.Context(), client.Commit{
		Writes: []interlock.Write{client.Put("x:1", []byte("1"))}, Leases: []interlock.LeaseID{lease.ID()},
	}); err == nil {
		t.Error("a commit under a lease that has ended was taken")
	}
}

// A rule that is newer than a submission in line returns it, and the record has that.
func TestNewRuleReturnsWhatLacksTheLease(t *testing.T) {
	r := newRig(t)
	stop := r.start(r.config("merger")) // without a worker
	s := Submission{ID: "a", Head: r.commit(r.begin, files{"migrations/a": "a\n"})}
	task := r.submit(s)
	r.taken(task, s)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.start(r.leasing("second"))
	o := r.result(task)
	if o.Reason != WhyPolicy || o.Tries != 1 {
		t.Errorf("%+v", o)
	}
	var record Record
	if _, err := read(t.Context(), r.author, web.RecordKey("a"), &record); err != nil || record.State != Returned {
		t.Errorf("%+v, %v", record, err)
	}
}
