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
}

// modelCommit is a commit: of an author, with what it changes, or a landing.
type modelCommit struct {
	parent     string
	tree       files
	sequence   uint64
	submission string
}

// id is what git would compute.
func (c *modelCommit) id() string { return hash(c.parent, treeID(c.tree), c.sequence, c.submission) }

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

func runWorld(t *testing.T, seed uint64) {
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
	w := &world{
		t: t, streams: server.NewStreams(srv, server.StreamConfig{}), rng: rand.New(rand.NewPCG(seed, 0)), faults: 12,
		commits: map[string]modelCommit{}, passed: map[string]bool{},
	}
	defer func() { _ = s.Close(ctx) }()
	defer w.streams.Cut(nil)
	w.head = w.add(modelCommit{tree: files{"README": "1"}})
	author, err := client.New(ctx, w.streams.Dial, client.Config{Agent: "author"})
	if err != nil {
		t.Fatal(err)
	}
	defer author.Close(ctx)
	if err := Setup(ctx, author, web, "check"); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() { w.check(ctx, author) })
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
		wait, cancel := context.WithTimeout(ctx, 10*time.Hour)
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
		case o.Code != Returned || o.Reason != WhyConflict && o.Reason != WhyChecks:
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

// check works on the checks.
func (w *world) check(ctx context.Context, c *client.Client) {
	err := c.Work(ctx, client.Worker{
		Queue: web.CheckQueue("check"), Concurrency: 4, Drain: time.Millisecond,
		Handle: func(_ context.Context, job *client.Job) (client.Done, error) {
			var check Check
			if err := job.Decode(&check); err != nil {
				return client.Done{}, err
			}
			<-time.After(time.Second)
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, text := range w.commits[check.Commit].tree {
				if strings.HasSuffix(text, "bad") {
					return client.Done{}, errors.New("the tree is bad")
				}
			}
			w.passed[check.Tree] = true
			return client.Done{}, nil
		},
	})
	if err != nil && ctx.Err() == nil {
		w.t.Errorf("the worker: %v", err)
	}
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
			Client: c, Name: web, Ref: "refs/heads/main", Boundary: p, Target: (*processRef)(p), Files: p, Profile: "model",
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

func (r *processRef) Move(_ context.Context, m merge.Move) error {
	p := (*process)(r)
	return p.call(func() error {
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
			at = w.commits[at].parent
		}
		if at == "" {
			w.t.Errorf("%s moves the ref, and does not descend from %s", m.New, m.Old)
		}
		w.head, w.fence = m.New, merge.Fence{Token: m.Token, Sequence: m.Sequence, Commit: m.New}
		return nil
	})
}

func (r *processRef) RemoveLocks(context.Context, time.Time) ([]string, error) { return nil, nil }

func (p *process) Land(_ context.Context, t merge.Turn) (l merge.Landing, err error) {
	err = p.call(func() error {
		w := p.w
		parent, head := w.commits[t.Parent], w.commits[t.Head]
		base := w.commits[head.parent]
		c := modelCommit{parent: t.Parent, tree: maps.Clone(parent.tree), sequence: t.Sequence, submission: t.ID}
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

func (p *process) Admit(_ context.Context, t merge.Turn) (paths []string, err error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return slices.Sorted(maps.Keys(p.w.commits[t.Head].tree)), nil
}

func (p *process) Clashes(context.Context, string, string, []string) ([]merge.Clash, error) {
	return nil, nil
}

func (p *process) List(context.Context, string, string) ([]string, error) { return nil, nil }

func (p *process) Tree(_ context.Context, commit string) (string, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return treeID(p.w.commits[commit].tree), nil
}

func (p *process) Kind(context.Context, string) (string, error) { return "commit", nil }

func (p *process) Base(context.Context, string, string) (string, error) { return "", nil }

func (p *process) Contains(context.Context, string, string) (bool, error) { return true, nil }

func (p *process) Diff(context.Context, string, string, []string) (string, error) { return "", nil }
