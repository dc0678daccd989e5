package merger

import (
	"context"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/search"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/train"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// A world is mergers of one target over a real server, with a git that is a model, in the time of a bubble. At each
// call of git a merger may die, before the call has an effect or after, be cut off until its lease is lost and then
// carry the call out, or get an error, with the effect or without. A dead one is started again.
//
// The model checks at each move that the tree was checked and that the ref goes forward. At the end each submission
// has one outcome, and the landed ones are on the branch, once each. The faults come from a seed, and the goroutines
// run in an order of their own, so that a seed is not one run.
type world struct {
	t       *testing.T
	streams *server.Streams

	mu      sync.Mutex
	rng     *rand.Rand
	faults  int // that are left
	head    string
	fence   merge.Fence
	commits map[string]modelCommit
	passed  map[string]bool // trees
	signs   bool            // landings are signed, each time in another way
	slots   int             // of a worker
}

// modelCommit is a commit: of an author, with what it changes, or a landing.
type modelCommit struct {
	parent     string
	tree       files
	sequence   uint64
	submission string
	signature  string
}

// id is what git would compute.
func (c *modelCommit) id() string {
	return hash(c.parent, treeID(c.tree), c.sequence, c.submission, c.signature)
}

func treeID(tree files) string {
	var parts []any
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		parts = append(parts, path, tree[path])
	}
	return hash(parts...)
}

func hash(parts ...any) string { return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "%q", parts))) }

// add makes a commit.
func (w *world) add(c modelCommit) string {
	id := c.id()
	w.commits[id] = c
	return id
}

func TestWorlds(t *testing.T) {
	from, to := search.Seeds(t, 0, 15, 300)
	for seed := from; seed < to; seed++ {
		synctest.Test(t, func(t *testing.T) { runWorld(t, seed) })
		if t.Failed() {
			t.Fatalf("world %d", seed)
		}
	}
}

// newWorld makes a world without mergers and workers, and an author in it. end ends it.
func newWorld(t *testing.T, seed uint64, faults int) (w *world, author *client.Client, end func()) {
	ctx := context.Background()
	j, err := (&memjournal.Store{}).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s, err := shard.Open(ctx, shard.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Config{Shard: s, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	w = &world{
		t: t, streams: server.NewStreams(srv, server.StreamConfig{}), rng: rand.New(rand.NewPCG(seed, 0)), faults: faults,
		commits: map[string]modelCommit{}, passed: map[string]bool{}, slots: 40,
	}
	w.head = w.add(modelCommit{tree: files{"README": "1"}})
	if author, err = client.New(ctx, w.streams.Dial, client.Config{Agent: "author"}); err != nil {
		t.Fatal(err)
	}
	if err := Setup(ctx, author, web, "check"); err != nil {
		t.Fatal(err)
	}
	return w, author, func() {
		_ = author.Close(ctx)
		w.streams.Cut(nil)
		_ = s.Close(ctx)
	}
}

func runWorld(t *testing.T, seed uint64) {
	w, author, endWorld := newWorld(t, seed, 16)
	defer endWorld()
	w.signs = seed%2 == 0
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() { w.keepWorker(ctx, w.anyCheck) })
	for slot := range 3 {
		running.Go(func() { w.keepMerger(ctx, fmt.Sprintf("merger-%d", slot)) })
	}
	begin := w.head
	tasks := map[string]interlock.TaskID{}
	for i := range 12 {
		id := fmt.Sprintf("s-%d", i)
		w.mu.Lock()
		text := fmt.Sprint(i)
		if w.rng.IntN(6) == 0 {
			text += " bad"
		}
		change := files{"README": "1", fmt.Sprintf("file-%d", w.rng.IntN(9)): text}
		head := w.add(modelCommit{parent: begin, tree: change, submission: id})
		pause := time.Duration(w.rng.IntN(20)) * time.Second
		w.mu.Unlock()
		task, err := Submit(ctx, author, web, Submission{ID: id, Head: head}, "change")
		if err != nil {
			t.Fatal(err)
		}
		tasks[id] = task.ID
		<-time.After(pause)
	}
	w.settle(ctx, author, begin, tasks)
}

// settle waits for all outcomes, and compares them with the branch.
func (w *world) settle(ctx context.Context, author *client.Client, begin string, tasks map[string]interlock.TaskID) {
	want := map[string]string{} // landed, and their commits
	for id, task := range tasks {
		wait, cancel := context.WithTimeout(ctx, 100*time.Hour)
		settled, err := author.Await(wait, task)
		cancel()
		if err != nil {
			w.t.Fatalf("%s has no outcome: %v", id, err)
		}
		var o Outcome
		if err := json.Unmarshal(settled.Result, &o); err != nil {
			w.t.Fatal(err)
		}
		switch {
		case o.Code == Landed:
			want[id] = o.Landing.Commit
		case o.Code != Returned || o.Reason != WhyConflict && o.Reason != WhyChecks && o.Reason != WhyFailed:
			w.t.Errorf("%s: %+v", id, o)
		}
		var r Record
		if _, err := read(ctx, author, web.RecordKey(id), &r); err != nil || r.State != o.Code {
			w.t.Errorf("the record of %s is %+v, %v, and its outcome %s", id, r, err, o.Code)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	got := map[string]string{}
	for at := w.head; at != begin; at = w.commits[at].parent {
		c := w.commits[at]
		if earlier, ok := got[c.submission]; ok {
			w.t.Errorf("%s landed as %s and as %s", c.submission, earlier, at)
		}
		got[c.submission] = at
	}
	if !maps.Equal(got, want) {
		w.t.Errorf("landed %v, and the outcomes are %v", got, want)
	}
	if len(got) == 0 {
		w.t.Error("nothing has landed")
	}
}

// keepWorker runs a worker of the checks, and another one when that has died. try checks a tree.
func (w *world) keepWorker(ctx context.Context, try func(ctx context.Context, p *process, tree files) (Report, error)) {
	for ctx.Err() == nil {
		p := &process{w: w}
		p.ctx, p.cancel = context.WithCancel(ctx)
		c, err := client.New(ctx, p.dial, client.Config{Agent: "worker"})
		if err != nil {
			w.t.Error(err)
			return
		}
		err = c.Work(p.ctx, client.Worker{
			Queue: web.CheckQueue("check"), Concurrency: w.slots, Drain: time.Millisecond,
			Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
				var check Check
				if err := job.Decode(&check); err != nil {
					return client.Done{}, err
				}
				<-time.After(time.Second)
				w.mu.Lock()
				tree := w.commits[check.Commit].tree
				w.mu.Unlock()
				report, err := try(ctx, p, tree)
				w.mu.Lock()
				defer w.mu.Unlock()
				w.passed[check.Tree] = w.passed[check.Tree] || err == nil && !report.Failed && !report.Lost
				return client.Done{Result: report}, err
			},
		})
		if err != nil && p.ctx.Err() == nil {
			w.t.Errorf("the worker: %v", err)
		}
		p.cut(true)
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_ = c.Close(gone)
		<-time.After(time.Second)
	}
}

// judge is a check that some trees do not pass.
func judge(tree files) (Report, error) {
	for _, text := range tree {
		if strings.HasSuffix(text, "bad") {
			return Report{}, errors.New("the tree is bad")
		}
	}
	return Report{}, nil
}

// anyCheck is a check, or a fault: its worker dies, hangs for longer than the limit, or cannot try.
func (w *world) anyCheck(ctx context.Context, p *process, tree files) (Report, error) {
	w.mu.Lock()
	fault := w.rng.IntN(30)
	if w.faults == 0 {
		fault = 30
	}
	if fault < 3 {
		w.faults--
	}
	w.mu.Unlock()
	switch fault {
	case 0:
		return Report{}, p.die()
	case 1:
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Hour):
		}
		return Report{}, errors.New("too late")
	case 2:
		return Report{Lost: true, Tail: "no disk"}, nil
	}
	return judge(tree)
}

// keepMerger runs a merger, and another one when that has died.
func (w *world) keepMerger(ctx context.Context, name string) {
	for ctx.Err() == nil {
		p := &process{w: w}
		p.ctx, p.cancel = context.WithCancel(ctx)
		c, err := client.New(ctx, p.dial, client.Config{Agent: name})
		if err != nil {
			w.t.Error(err)
			return
		}
		m, err := New(Config{
			Client: c, Name: web, Boundary: p, Target: (*processRef)(p), Files: p, Profile: "model",
			Train: train.Config{Runners: 3},
		})
		if err != nil {
			w.t.Error(err)
			return
		}
		if err := m.Run(p.ctx); err != nil {
			w.t.Errorf("%s: %v", name, err)
		}
		p.cut(true) // a process that dies sends nothing more
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_ = c.Close(gone)
		<-time.After(time.Second)
	}
}

// process is a merger's process, and its git.
type process struct {
	w      *world
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	off   bool // no connection to the server
	links []proto.ClientLink
}

// processRef is the ref as a process sees it.
type processRef process

func (p *process) dial(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return nil, errors.New("cut off")
	}
	link, err := p.w.streams.Dial(ctx, hello)
	if err == nil {
		p.links = append(p.links, link)
	}
	return link, err
}

// cut takes the connection, or lets there be one again.
func (p *process) cut(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = off
	for _, link := range p.links {
		link.Close(nil)
	}
	p.links = nil
}

func (p *process) die() error {
	p.cut(true)
	p.cancel()
	return context.Canceled
}

// call carries out a call of git, or a fault.
func (p *process) call(effect func() error) error {
	w := p.w
	if p.ctx.Err() != nil {
		return context.Canceled
	}
	w.mu.Lock()
	fault := w.rng.IntN(60)
	if w.faults == 0 {
		fault = 60
	}
	if fault < 5 {
		w.faults--
	}
	pause := time.Duration(w.rng.IntN(120)) * time.Second
	w.mu.Unlock()
	atomic := func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		return effect()
	}
	switch fault {
	case 0:
		return p.die()
	case 1:
		_ = atomic()
		return p.die()
	case 2:
		p.cut(true)
		<-time.After(pause)
		p.cut(false)
		return atomic()
	case 3:
		return errors.New("git failed")
	case 4:
		return errors.Join(atomic(), errors.New("git was killed"))
	}
	return atomic()
}

func (r *processRef) Read(context.Context) (at merge.Position, err error) {
	p := (*process)(r)
	err = p.call(func() error {
		at = merge.Position{Head: p.w.head, Fence: p.w.fence}
		return nil
	})
	return at, err
}

func (w *world) stale(token uint64) error {
	if w.fence.Token == token {
		return nil
	}
	return &merge.Stale{Ref: "fence", Want: fmt.Sprint(token), Have: fmt.Sprint(w.fence.Token)}
}

func (r *processRef) Claim(_ context.Context, token uint64) (at merge.Position, err error) {
	p := (*process)(r)
	err = p.call(func() error {
		if p.w.fence.Token > token {
			return p.w.stale(token)
		}
		p.w.fence.Token = token
		at = merge.Position{Head: p.w.head, Fence: p.w.fence}
		return nil
	})
	return at, err
}

func (r *processRef) Move(_ context.Context, m merge.Move) (string, error) {
	p := (*process)(r)
	return m.New, p.call(func() error {
		w := p.w
		if err := w.stale(m.Token); err != nil {
			return err
		}
		if w.head != m.New && w.head != m.Old {
			return &merge.Stale{Ref: "ref", Want: m.Old, Have: w.head}
		}
		if tree := treeID(w.commits[m.New].tree); !w.passed[tree] {
			w.t.Errorf("%s moves the ref to a tree that was not checked", m.New)
		}
		at := m.New
		for at != m.Old && at != "" {
			if c := w.commits[at]; c.parent != "" && c.sequence != w.commits[c.parent].sequence+1 {
				w.t.Errorf("landing %d is on number %d", c.sequence, w.commits[c.parent].sequence)
			}
			if signed := w.commits[at].signature != ""; signed != w.signs {
				w.t.Errorf("landing %d is signed: %v, want %v", w.commits[at].sequence, signed, w.signs)
			}
			at = w.commits[at].parent
		}
		if at == "" {
			w.t.Errorf("%s moves the ref, and does not descend from %s", m.New, m.Old)
		}
		w.head, w.fence = m.New, merge.Fence{Token: m.Token, Sequence: m.Sequence, Commit: m.New}
		return nil
	})
}

func (r *processRef) Taken(_ context.Context, m merge.Move, head string) (taken string, err error) {
	p := (*process)(r)
	err = p.call(func() error {
		for at := head; at != "" && at != m.Old; at = p.w.commits[at].parent {
			if at == m.New {
				taken = at
			}
		}
		return nil
	})
	return taken, err
}

func (r *processRef) Revoke(ctx context.Context, _ uint64) (merge.Position, error) {
	return r.Read(ctx)
}

func (r *processRef) Probe(context.Context, string) error {
	return (*process)(r).call(func() error { return nil })
}

func (p *process) Probe(context.Context, string) error { return p.call(func() error { return nil }) }

func (r *processRef) Identity(context.Context) (merge.Identity, error) {
	return merge.Identity{ID: "model"}, nil
}

func (r *processRef) RemoveLocks(context.Context, time.Time) ([]string, error) { return nil, nil }

func (p *process) Land(_ context.Context, t merge.Turn) (l merge.Landing, err error) {
	err = p.call(func() error {
		w := p.w
		parent, head := w.commits[t.Parent], w.commits[t.Head]
		base := w.commits[head.parent]
		c := modelCommit{
			parent: t.Parent, tree: maps.Clone(parent.tree), sequence: t.Sequence, submission: t.ID, signature: t.Signature,
		}
		l = merge.Landing{Sequence: t.Sequence, Submission: t.ID, Parent: t.Parent, Profile: "model"}
		for path, text := range head.tree {
			switch {
			case base.tree[path] == text:
				continue
			case parent.tree[path] != base.tree[path]:
				return &merge.Refusal{
					Reason: merge.ReasonConflict, Paths: []string{path}, Conflicts: []merge.Conflict{{Path: path}},
				}
			}
			c.tree[path] = text
			l.Paths = append(l.Paths, path)
		}
		l.Commit, l.Tree = w.add(c), treeID(c.tree)
		return nil
	})
	return l, err
}

func (p *process) CanSign(context.Context) error { return p.call(func() error { return nil }) }

func (p *process) Sign(_ context.Context, l merge.Landing) (merge.Landing, error) {
	err := p.call(func() error {
		if c := p.w.commits[l.Commit]; p.w.signs {
			c.signature = fmt.Sprint(p.w.rng.Uint64())
			l.Signature, l.Commit = c.signature, p.w.add(c)
		}
		return nil
	})
	return l, err
}

func (p *process) Admit(_ context.Context, t merge.Turn) (paths []string, err error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return slices.Sorted(maps.Keys(p.w.commits[t.Head].tree)), nil
}

func (p *process) Clashes(context.Context, string, string, []string) ([]merge.Clash, error) {
	return nil, nil
}

func (p *process) List(context.Context, string, string) ([]string, error) { return nil, nil }

func (p *process) Read(context.Context, string, []string) (map[string]string, error) { return nil, nil }

func (p *process) Count(context.Context, string) (int, error) { return 1000, nil }

func (p *process) Reverted(context.Context, string, string, []string) (*Reverted, error) {
	return nil, nil
}

func (p *process) Tree(_ context.Context, commit string) (string, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return treeID(p.w.commits[commit].tree), nil
}

func (p *process) Kind(context.Context, string) (string, error) { return "commit", nil }

func (p *process) Base(context.Context, string, string) (string, error) { return "", nil }

func (p *process) Contains(context.Context, string, string) (bool, error) { return true, nil }

func (p *process) Added(context.Context, string, string) ([]string, error) { return nil, nil }

func (p *process) Diff(context.Context, string, string, []string) (string, error) { return "", nil }
