package webhook

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/shard"
)

// Shard is the part of *shard.Shard that a Sender needs.
type Shard interface {
	Do(ctx context.Context, cmd engine.Command) (engine.Effect, interlock.At, error)
	Read(ctx context.Context, ns interlock.Namespace, query func(*engine.Engine, engine.Time)) (interlock.At, error)
	Follow(ctx context.Context, f shard.Follower) error
	At() interlock.At
	First() interlock.Index
	Failed() <-chan struct{}
}

// Config is the configuration of a Sender. Shard, Targets and Event are required.
type Config struct {
	Shard   Shard
	Targets *Targets
	// PublicURL is the address under which people reach the server; "" means no links.
	PublicURL string
	// Event returns an event as GET /v1/events shows it.
	Event func(*record.Event, interlock.Index, interlock.Epoch) json.RawMessage
	// Count counts messages and attempts by their outcome: delivered, failed, given_up. It may be nil.
	Count func(outcome string, n int)
	// Logger receives messages for the operator; nil discards them.
	Logger *slog.Logger
	// Transport sends requests; nil means real ones.
	Transport http.RoundTripper
}

// Sender sends the messages of all webhooks of a shard, for as long as its server is the active
// one.
type Sender struct {
	cfg    Config
	client *http.Client

	mu      sync.Mutex
	workers map[place]*worker
	changed map[interlock.Namespace]bool // namespaces to look at
	wake    chan struct{}                // has room for one
}

// place names a webhook.
type place struct {
	ns   interlock.Namespace
	name string
}

// New makes a Sender. It does nothing before Run.
func New(cfg Config) *Sender {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Count == nil {
		cfg.Count = func(string, int) {}
	}
	s := &Sender{
		cfg: cfg, client: newClient(cfg.Targets), workers: map[place]*worker{},
		changed: map[interlock.Namespace]bool{}, wake: make(chan struct{}, 1),
	}
	if cfg.Transport != nil {
		s.client.Transport = cfg.Transport
	}
	return s
}

// Committed takes notice of durable events. It neither blocks nor calls the shard.
func (s *Sender) Committed(ev *record.Event) {
	switch ev.Kind {
	case record.WebhookSet, record.WebhookRotated, record.WebhookDeleted, record.NamespaceDeleted, record.NamespaceMoved:
		s.look(ev.Namespace)
	}
}

func (s *Sender) look(namespaces ...interlock.Namespace) {
	s.mu.Lock()
	for _, ns := range namespaces {
		s.changed[ns] = true
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends messages until ctx ends or the shard fails, and returns when no request is under way
// any more.
func (s *Sender) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer s.stopAll()
	defer cancel()
	var all []interlock.Namespace
	if !s.read(ctx, func(e *engine.Engine, _ engine.Time) { all = e.WebhookNamespaces() }) {
		return
	}
	s.look(all...)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.cfg.Shard.Failed():
			return
		case <-s.wake:
		}
		s.mu.Lock()
		namespaces := s.changed
		s.changed = map[interlock.Namespace]bool{}
		s.mu.Unlock()
		for ns := range namespaces {
			var list []engine.WebhookView
			if !s.read(ctx, func(e *engine.Engine, _ engine.Time) { list = e.WebhooksOf(ns) }) {
				return
			}
			s.reconcile(ctx, ns, list)
		}
	}
}

// read is a query that is repeated until it is carried out, or the shard or ctx ends. It is about the whole
// shard, because a namespace that moves still has messages to send and answers no query.
func (s *Sender) read(ctx context.Context, query func(*engine.Engine, engine.Time)) bool {
	for {
		if _, err := s.cfg.Shard.Read(ctx, "", query); err == nil {
			return true
		}
		if !s.sleep(ctx, time.Second) {
			return false
		}
	}
}

// sleep reports whether the time has passed before ctx or the shard has ended.
func (s *Sender) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.cfg.Shard.Failed():
	case <-ctx.Done():
	}
	return false
}

// reconcile makes the workers of a namespace those of its webhooks. A webhook that was set or
// rotated gets a new worker, which tries at once.
func (s *Sender) reconcile(ctx context.Context, ns interlock.Namespace, list []engine.WebhookView) {
	s.mu.Lock()
	var old []*worker
	for at, w := range s.workers {
		if at.ns == ns {
			old = append(old, w)
			delete(s.workers, at)
		}
	}
	var ended []*worker
	for _, w := range old {
		i := slices.IndexFunc(list, func(v engine.WebhookView) bool { return v.Name == w.view.Name })
		if i >= 0 && w.serves(&list[i]) && !w.hasEnded() {
			s.workers[place{ns, w.view.Name}] = w
		} else {
			ended = append(ended, w)
		}
	}
	s.mu.Unlock()
	for _, w := range ended {
		w.cancel()
		<-w.done // its successor begins where it has ended
	}
	if len(ended) > 0 && !s.read(ctx, func(e *engine.Engine, _ engine.Time) { list = e.WebhooksOf(ns) }) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, view := range list {
		at := place{ns, view.Name}
		if !view.Paused && s.workers[at] == nil {
			s.workers[at] = s.start(ctx, ns, view)
		}
	}
}

func (s *Sender) stopAll() {
	s.mu.Lock()
	list := s.workers
	s.workers = map[place]*worker{}
	s.mu.Unlock()
	for _, w := range list {
		w.cancel()
	}
	for _, w := range list {
		<-w.done
	}
}

// Test sends a ping of a webhook now, and returns the receiver's answer.
func (s *Sender) Test(ctx context.Context, ns interlock.Namespace, w *engine.WebhookView) Answer {
	body, err := encode(w, ping(ns, w.Name))
	if err != nil {
		return Answer{Problem: err.Error()}
	}
	id := idOf(w, 0, 0, record.Time(time.Now().UnixNano()))
	return post(ctx, s.client, w, id, body)
}

// CheckURL returns why a URL cannot be that of a webhook, nil if it can.
func (s *Sender) CheckURL(url string) error { return s.cfg.Targets.CheckURL(url) }

// IsBehind reports whether a webhook of a namespace has not settled its messages about all events up to an index.
// Paused ones do not count.
func (s *Sender) IsBehind(ns interlock.Namespace, index interlock.Index) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, w := range s.workers {
		if at.ns == ns && !w.hasEnded() && w.reached.Load() < uint64(index) {
			return true
		}
	}
	return s.changed[ns]
}

// Status is how the deliveries of a webhook stand, since the server or the webhook has started.
type Status struct {
	Attempted time.Time // of the last attempt; zero if there was none
	Answer    Answer    // to it
	Failures  int       // in a row
	Next      time.Time // of the next attempt; zero if none is planned
	Pending   time.Time // the time of the oldest event with a message that was tried; zero: none
}

// Status returns how the deliveries of a webhook stand; zero for a paused one.
func (s *Sender) Status(ns interlock.Namespace, name string) Status {
	s.mu.Lock()
	w := s.workers[place{ns, name}]
	s.mu.Unlock()
	if w == nil {
		return Status{}
	}
	return w.status()
}

// Backlog returns how many webhooks have a message that was tried and is not delivered, and the age
// of the oldest of their events.
func (s *Sender) Backlog() (webhooks int, oldest time.Duration) {
	s.mu.Lock()
	list := make([]*worker, 0, len(s.workers))
	for _, w := range s.workers {
		list = append(list, w)
	}
	s.mu.Unlock()
	for _, w := range list {
		if at := w.status().Pending; !at.IsZero() {
			webhooks++
			oldest = max(oldest, time.Since(at))
		}
	}
	return webhooks, oldest
}
