package webhook

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/shard"
)

const (
	// A worker collects so many events before it sends messages, and then acknowledges them together.
	maxBatch      = 16
	maxBatchBytes = 64 << 10
	// pulse is how often a worker without news looks whether its cursor is about to be truncated.
	pulse = time.Minute
)

// worker sends the messages of one webhook.
type worker struct {
	s      *Sender
	ns     interlock.Namespace
	view   engine.WebhookView // as it was set; Cursor is where the worker began
	keys   engine.WebhookKeys
	cancel context.CancelFunc
	done   chan struct{}

	// Of the worker's goroutine.
	cursor   interlock.Index // acknowledged
	position interlock.Index // every event up to here was looked at, and is delivered or in the batch
	batch    []event
	bytes    int

	reached atomic.Uint64 // every event up to here was looked at, and its messages are settled

	mu    sync.Mutex
	stat  Status
	since time.Time // of the first failure in a row
}

func (s *Sender) start(ctx context.Context, ns interlock.Namespace, view engine.WebhookView) *worker {
	ctx, cancel := context.WithCancel(ctx)
	w := &worker{
		s: s, ns: ns, view: view, keys: engine.NewWebhookKeys(view.Key), cancel: cancel, done: make(chan struct{}),
		cursor: min(view.Cursor, s.cfg.Shard.At().Index),
	}
	w.position = w.cursor
	go func() {
		defer close(w.done)
		defer cancel()
		w.run(ctx)
	}()
	return w
}

// serves reports whether the worker has the webhook's present settings.
func (w *worker) serves(v *engine.WebhookView) bool {
	return !v.Paused && v.ID == w.view.ID && v.Generation == w.view.Generation && v.URL == w.view.URL &&
		slices.Equal(v.Events, w.view.Events) && v.Key == w.view.Key && v.Format == w.view.Format &&
		v.ApproveLinks == w.view.ApproveLinks
}

// hasEnded reports whether the worker has ended by itself: its receiver was gone.
func (w *worker) hasEnded() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *worker) status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stat
}

// errStop ends a look into the journal.
var errStop = errors.New("webhook: enough was collected")

func (w *worker) run(ctx context.Context) {
	for {
		err := w.collect(ctx)
		if ctx.Err() != nil {
			return
		}
		if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeHistoryTrimmed {
			if !w.reportGap(ctx) {
				return
			}
			continue
		}
		if err != nil && !errors.Is(err, errStop) {
			w.s.cfg.Logger.Warn("a webhook cannot read the journal, and tries again",
				"namespace", string(w.ns), "webhook", w.view.Name, "error", err)
			if !w.s.sleep(ctx, pauses[0]) {
				return
			}
			continue
		}
		if !w.deliver(ctx) {
			return
		}
	}
}

// collect looks at the journal from the worker's position on, and returns errStop when there is
// something to do.
func (w *worker) collect(ctx context.Context) error {
	w.batch, w.bytes = w.batch[:0], 0
	return w.s.cfg.Shard.Follow(ctx, shard.Follower{
		Namespace: w.ns, From: w.position + 1, Pulse: pulse,
		Visit: func(index interlock.Index, epoch interlock.Epoch, events []record.Event) error {
			for i := range events {
				if typ := typeOf(&events[i]); typ != "" && w.wants(typ) && events[i].Namespace == w.ns {
					w.batch = append(w.batch, event{events[i], index, epoch, i, typ})
					w.bytes += len(events[i].Blob) + len(events[i].Note) + len(events[i].Outcome) + 512
				}
			}
			w.position = index
			if len(w.batch) >= maxBatch || w.bytes >= maxBatchBytes {
				return errStop
			}
			return nil
		},
		Reached: func(index interlock.Index) error {
			w.position = max(w.position, index)
			if len(w.batch) == 0 {
				w.reached.Store(uint64(w.position))
			}
			if len(w.batch) > 0 || w.isOld() {
				return errStop
			}
			return nil
		},
	})
}

func (w *worker) wants(typ string) bool {
	return slices.Contains(w.view.Events, All) || slices.Contains(w.view.Events, typ)
}

// isOld reports whether the cursor lies in the older half of the history that is kept, so that it
// should move although nothing was delivered. An idle journal does not grow by that: each move
// comes after it has doubled.
func (w *worker) isOld() bool {
	first, newest := w.s.cfg.Shard.First(), w.s.cfg.Shard.At().Index
	return w.cursor < w.position && (w.cursor < first || w.cursor-first < (newest-first)/2)
}

// deliver sends the messages about the batch in their order, and acknowledges them. It reports
// whether the worker goes on.
func (w *worker) deliver(ctx context.Context) bool {
	p := record.WebhookProgress{ID: w.view.ID, Cursor: w.position}
	for i := range w.batch {
		ev := &w.batch[i]
		body, err := w.body(ctx, ev)
		if err != nil {
			return false
		}
		if body == nil {
			continue
		}
		id := idOf(&w.view, ev.index, ev.ordinal, ev.At)
		switch w.send(ctx, &p, ev.index-1, id, time.Unix(0, int64(ev.At)), body) {
		case delivered:
			p.Delivered++
		case givenUp:
			p.GivenUp++
		case stopped:
			if p.Cursor = ev.index - 1; p.Delivered+p.GivenUp > 0 {
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				defer cancel()
				w.ack(last, &p)
			}
			return false
		case receiverGone:
			p.Gone, p.Cursor = true, ev.index-1
			w.ack(ctx, &p)
			w.s.cfg.Logger.Warn("the receiver of a webhook is gone, so the webhook pauses",
				"namespace", string(w.ns), "webhook", w.view.Name)
			return false
		}
	}
	return w.ack(ctx, &p)
}

// body returns the body of the message about an event; nil if the webhook leaves the event out.
func (w *worker) body(ctx context.Context, ev *event) (body []byte, err error) {
	for {
		b, err := w.s.message(ctx, &w.view, &w.keys, ev)
		if err == nil && b == nil {
			return nil, nil
		}
		if err == nil {
			return encode(&w.view, b)
		}
		if !w.s.sleep(ctx, pauses[0]) {
			return nil, err
		}
	}
}

// reportGap tells the receiver which part of the journal was truncated before it was looked at.
func (w *worker) reportGap(ctx context.Context) bool {
	first := w.s.cfg.Shard.First()
	if first <= w.position+1 {
		return w.s.sleep(ctx, pauses[0])
	}
	gap := Gap{From: w.position + 1, To: first - 1}
	b := &Body{Type: TypeGap, Timestamp: time.Now().UTC(), Data: Data{
		Namespace: string(w.ns), Gap: &gap, Text: prose.NoticeOf(TypeGap, &prose.Notice{}),
		Commands: []string{"interlock log"},
	}}
	body, err := encode(&w.view, b)
	if err != nil {
		return false
	}
	p := record.WebhookProgress{ID: w.view.ID, Cursor: gap.To}
	switch w.send(ctx, &p, w.cursor, idOf(&w.view, gap.To, -1, 0), b.Timestamp, body) {
	case stopped:
		return false
	case receiverGone:
		p.Cursor, p.Gone = w.cursor, true
		w.ack(ctx, &p)
		return false
	case delivered:
		p.Delivered++
	case givenUp:
		p.GivenUp++
	}
	w.position = gap.To
	return w.ack(ctx, &p)
}

// sent is the outcome of a message.
type sent uint8

const (
	delivered sent = iota
	givenUp
	receiverGone
	stopped // the worker ends
)

// send tries a message until it is delivered or given up. Before it waits after a failure, it
// acknowledges what p has of the messages before, which lie up to an index.
func (w *worker) send(
	ctx context.Context, p *record.WebhookProgress, before interlock.Index, id string, at time.Time, body []byte,
) sent {
	for {
		a := post(ctx, w.s.client, &w.view, id, body)
		if ctx.Err() != nil {
			return stopped
		}
		now := time.Now()
		if a.delivered() {
			w.s.cfg.Count("delivered", 1)
			w.note(Status{Attempted: now, Answer: a})
			return delivered
		}
		w.s.cfg.Count("failed", 1)
		failures := w.status().Failures + 1
		if failures == 1 {
			w.since = now
		}
		if a.gone() {
			return receiverGone
		}
		wait := pause(failures, a.retryAfter)
		over := now.Sub(at) >= tryFor && now.Sub(w.since) >= tryFor
		st := Status{Attempted: now, Answer: a, Failures: failures, Next: now.Add(wait), Pending: at}
		w.note(st)
		if p.Delivered+p.GivenUp > 0 {
			soFar := *p
			soFar.Cursor = before
			if !w.ack(ctx, &soFar) {
				return stopped
			}
			p.Delivered, p.GivenUp = 0, 0
		}
		if !w.s.sleep(ctx, wait) {
			return stopped
		}
		if over {
			w.s.cfg.Count("given_up", 1)
			w.s.cfg.Logger.Warn("a message of a webhook was given up", "namespace", string(w.ns), "webhook", w.view.Name,
				"id", id, "failure", a.Problem)
			return givenUp
		}
	}
}

func (w *worker) note(st Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stat = st
}

// ack makes progress durable, and reports whether the worker goes on.
func (w *worker) ack(ctx context.Context, p *record.WebhookProgress) bool {
	for {
		cmd := &engine.AckWebhook{Head: engine.Head{Namespace: w.ns}, Name: w.view.Name, WebhookProgress: *p}
		eff, _, err := w.s.cfg.Shard.Do(ctx, cmd)
		switch {
		case err == nil && eff.Outcome == engine.Done:
			w.cursor = max(w.cursor, p.Cursor)
			return !p.Gone
		case err == nil: // it was deleted
			return false
		}
		if !w.s.sleep(ctx, time.Second) {
			return false
		}
	}
}
