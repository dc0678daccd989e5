package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/launch"
)

const (
	// shortTTL is that of the two agents that fail, so that the scene continues within half a
	// minute. It is the shortest that a server accepts.
	shortTTL = interlock.MinTTL
	ttl      = interlock.DefaultTTL

	stopTimeout = 10 * time.Second
)

// underLeases plays the second run, with the server that cfg names.
func underLeases(ctx context.Context, cfg Config, p *plan, dir string, s *story) (*outcome, error) {
	l, err := open(p, filepath.Join(dir, "under-leases"))
	if err != nil {
		return nil, err
	}
	f := &field{
		plan: p, ledger: l, story: s, binary: cfg.Binary, outcome: &outcome{},
		order: order{Server: cfg.Server, Namespace: cfg.Namespace, Credential: cfg.Credential, Dir: l.dir},
	}
	if err := f.play(ctx); err != nil {
		return nil, err
	}
	return f.outcome, f.outcome.count(p, l, nil)
}

// startServer starts a server, or starts it again, with the journal in dir.
func startServer(ctx context.Context, binary, dir string, args ...string) (*launch.Server, error) {
	log, err := os.OpenFile(filepath.Join(dir, "server.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return launch.Start(ctx, launch.Config{Binary: binary, DataDir: filepath.Join(dir, "server"), Args: args, Log: log})
}

// ready tells where a server of the scene answers.
func (cfg *Config) ready(server *launch.Server, secret string) {
	if cfg.Ready != nil {
		cfg.Ready("http://"+server.HTTP, secret)
	}
}

// stopServer stops the server of a scene when it may end, also when ctx has ended, and returns the scene's error, or
// else its own.
func (cfg *Config) stopServer(ctx context.Context, server *launch.Server, err error) error {
	if cfg.Linger != nil && err == nil {
		cfg.Linger()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if stopped := server.Stop(ctx); err == nil {
		return stopped
	}
	return err
}

// field is where the agents under leases meet.
type field struct {
	plan   *plan
	ledger ledger
	story  *story
	binary string
	order  order // for every agent, but for its update and ttl

	mu       sync.Mutex // guards the fields below
	outcome  *outcome
	watchers []*watcher
}

// watcher waits for the first event of its kind that an agent of this process
// has on an account.
type watcher struct {
	event, account string
	seen           chan step // capacity 1
}

// play lets the two agents that fail go first, so that others stand behind them, and then the
// rest.
func (f *field) play(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	frozen, killed := f.plan.tasks[f.plan.frozen], f.plan.tasks[f.plan.killed]
	behindFrozen := f.watch("written", frozen.update.Account)
	behindKilled := f.watch("thinking", killed.update.Account)

	f.story.start()
	began := time.Now()
	var all sync.WaitGroup
	first := make(chan struct{}, 2)
	holds := func() { first <- struct{}{} }
	fail := func(err error) {
		if err != nil {
			cancel(err)
		}
	}
	all.Go(func() { fail(f.freeze(ctx, frozen, holds, behindFrozen)) })
	all.Go(func() { fail(f.kill(ctx, killed, holds, behindKilled)) })
	for range 2 {
		select {
		case <-first:
		case <-ctx.Done():
		}
	}

	rest := slices.Clone(f.plan.tasks)
	rest = slices.DeleteFunc(rest, func(t task) bool { return t == frozen || t == killed })
	fail(everybody(ctx, rest, func(ctx context.Context, t task) error {
		if err := pause(ctx, t.at); err != nil {
			return err
		}
		return f.agent(ctx, t)
	}))
	all.Wait()
	f.outcome.Took = time.Since(began)
	return context.Cause(ctx)
}

// agent is one that works as it should, in this process.
func (f *field) agent(ctx context.Context, t task) error {
	o := f.order
	o.Update, o.TTLMS = t.update, ttl.Milliseconds()
	w := &worker{
		dial:   o.dial,
		ledger: f.ledger,
		update: t.update,
		answer: func(ctx, lease context.Context) error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(lease, func() { cancel(context.Cause(lease)) })()
			return pause(ctx, t.think)
		},
		tell: func(s step) { f.tell(t, s) },
	}
	return w.run(ctx)
}

// tell counts what an agent reports of itself and wakes the goroutines that wait for it.
func (f *field) tell(t task, s step) {
	for _, w := range f.watchers {
		if w.event == s.Event && w.account == t.update.Account {
			select {
			case w.seen <- s:
			default:
			}
		}
	}
	switch s.Event {
	case "thinking":
		f.waited(s)
	case "written":
		f.story.written()
	case "refused":
		f.refused(t, s, 0)
	case "lost":
		f.thrown(t.real)
		f.story.say("%s lost its lease and starts over: %s", s.Agent, s.Reason)
	}
}

// refused counts a write that the guard refused.
func (f *field) refused(t task, s step, frozen time.Duration) {
	f.thrown(t.real)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcome.Refused = append(f.outcome.Refused, refusal{
		Agent: s.Agent, Account: t.update.Account, Fence: s.Fence, Higher: s.Higher, Frozen: frozen,
	})
}

// thrown counts thinking that came to nothing.
func (f *field) thrown(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcome.Thrown += d
}

func (f *field) watch(event, account string) *watcher {
	w := &watcher{event: event, account: account, seen: make(chan step, 1)}
	f.watchers = append(f.watchers, w)
	return w
}

func (w *watcher) wait(ctx context.Context) (step, error) {
	select {
	case s := <-w.seen:
		return s, nil
	case <-ctx.Done():
		return step{}, context.Cause(ctx)
	}
}

// start starts the process of an agent that will fail, and returns when it thinks:
// it then holds its account and has read it.
func (f *field) start(ctx context.Context, t task) (*process, step, error) {
	o := f.order
	o.Update, o.TTLMS = t.update, shortTTL.Milliseconds()
	p, err := startProcess(ctx, f.binary, "agent", o)
	if err != nil {
		return nil, step{}, err
	}
	s, err := p.next(ctx, "thinking")
	f.waited(s)
	return p, s, err
}

// waited counts a time in line.
func (f *field) waited(s step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcome.Waits = append(f.outcome.Waits, time.Duration(s.WaitMS)*time.Millisecond)
}

// freeze stops an agent while it thinks, until another agent has written to its account, and
// lets it go on as if nothing had been.
func (f *field) freeze(ctx context.Context, t task, holds func(), behind *watcher) error {
	p, s, err := f.start(ctx, t)
	if err != nil {
		return err
	}
	if err := p.freeze(); err != nil {
		return fmt.Errorf("freeze an agent: %w", err)
	}
	since := time.Now()
	f.story.say("%s holds account %s under fence %s and is frozen while it thinks (SIGSTOP, process %d, ttl %s)",
		t.update.Agent, t.update.Account, s.Fence, p.pid(), shortTTL)
	holds()

	other, err := behind.wait(ctx)
	if err != nil {
		return err
	}
	f.story.say("account %s went on without it: %s wrote under fence %s", t.update.Account, other.Agent, other.Fence)
	// The answer lies ready when the agent wakes up, so that writing is the first
	// thing it does.
	if err := p.answer(); err != nil {
		return err
	}
	if err := p.thaw(); err != nil {
		return fmt.Errorf("thaw an agent: %w", err)
	}
	refused, err := p.next(ctx, "refused")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrClaim, err)
	}
	frozen := time.Since(since)
	f.refused(t, refused, frozen)
	f.story.say("%s woke up after %.1f s and wrote under fence %s: refused, the file has seen %s. It starts over.",
		t.update.Agent, frozen.Seconds(), refused.Fence, refused.Higher)

	again, err := p.next(ctx, "thinking")
	if err != nil {
		return err
	}
	f.waited(again)
	if err := pause(ctx, t.think); err != nil {
		return err
	}
	if err := p.answer(); err != nil {
		return err
	}
	if _, err := p.next(ctx, "written"); err != nil {
		return err
	}
	f.story.written()
	return p.gone(ctx)
}

// kill ends an agent in the middle of its thinking, and hands its task to another one, which
// goes to the end of the line.
func (f *field) kill(ctx context.Context, t task, holds func(), behind *watcher) error {
	p, s, err := f.start(ctx, t)
	if err != nil {
		return err
	}
	holds()
	if err := pause(ctx, t.think/2); err != nil {
		return err
	}
	if err := p.kill(); err != nil {
		return fmt.Errorf("kill an agent: %w", err)
	}
	died := time.Now()
	if err := p.gone(ctx); err != nil {
		return err
	}
	f.story.say("%s holds account %s under fence %s and is killed while it thinks (SIGKILL, process %d, ttl %s)",
		t.update.Agent, t.update.Account, s.Fence, p.pid(), shortTTL)

	next, err := behind.wait(ctx)
	if err != nil {
		return err
	}
	d := &death{
		Agent: t.update.Agent, Account: t.update.Account, Fence: s.Fence, Next: next.Agent, NextFence: next.Fence,
		After: time.Since(died),
	}
	f.mu.Lock()
	f.outcome.Killed = d
	f.mu.Unlock()
	f.thrown(t.real / 2)
	f.story.say("its lease ended by itself: %s holds account %s under fence %s, %.1f s after the death. Its task "+
		"begins anew.",
		d.Next, d.Account, d.NextFence, d.After.Seconds())
	return f.agent(ctx, t)
}
