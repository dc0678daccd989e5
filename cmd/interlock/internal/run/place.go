package run

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// waiterRow shows how a request stands in line, asking now and then.
type waiterRow struct {
	r        *invocation
	c        *client.Client
	deadline time.Time
	cancel   context.CancelCauseFunc

	shown   *acquire.Line
	stopAsk context.CancelFunc
	done    chan struct{}
}

// queued is called by the client when the request has a place.
func (l *waiterRow) queued(ticket interlock.Ticket, holders []interlock.Holder) {
	list := make([]api.Holder, len(holders))
	for i := range holders {
		list[i] = cli.HolderOf(&holders[i])
	}
	if err := acquire.OwnLease(list, acquire.ChoiceOf(l.r.q.Request(l.r.claims))); err != nil {
		l.cancel(err)
		return
	}
	if l.r.around != nil && l.r.declared == nil {
		l.r.declared = l.r.around.Await(l.c.SessionName(), l.cancel)
	}
	if l.r.quiet {
		return
	}
	first := l.shown == nil
	if first {
		l.shown = acquire.NewLine(l.r.a, l.r.wanted(), l.r.q.Parties, l.deadline)
	}
	l.shown.Queued(ticket.Position, ticket.Length, ticket.ETA, list)
	if first {
		var ctx context.Context
		ctx, l.stopAsk = context.WithCancel(context.Background())
		l.done = make(chan struct{})
		go func() {
			defer close(l.done)
			l.ask(ctx)
		}()
	}
}

// ask looks at the keys until ctx ends: the stream tells of the end of the wait
// only. Without an answer the line stays as it was.
func (l *waiterRow) ask(ctx context.Context) {
	pace := client.Backoff{Least: 2 * time.Second, Most: 30 * time.Second}
	if l.shown.Live {
		pace.Least, pace.Most = 500*time.Millisecond, 5*time.Second
	}
	server := l.r.a.API()
	for eta := time.Duration(0); pace.Wait(ctx, eta) == nil; {
		var place *api.Waiter
		var at api.KeyView
		for _, c := range l.r.claims[:min(len(l.r.claims), 8)] {
			_, answer, err := server.Do(ctx, cli.Request{Method: http.MethodGet, Path: cli.KeyPath(string(c.Key))})
			var k api.KeyView
			if err != nil || json.Unmarshal(answer, &k) != nil {
				continue
			}
			i := slices.IndexFunc(k.Waiters, func(w api.Waiter) bool { return w.Session == l.c.SessionName() })
			if i >= 0 && (place == nil || k.Waiters[i].ETA > place.ETA) {
				place, at = &k.Waiters[i], k
			}
		}
		if place != nil {
			eta = cli.Millis(place.ETA)
			l.shown.Queued(place.Position, at.Length, eta, at.Holders)
		}
	}
}

func (l *waiterRow) holders() []api.Holder {
	if l.shown == nil {
		return nil
	}
	return l.shown.Blockers()
}

// end takes what is shown away. It may be called more than once.
func (l *waiterRow) end() {
	if l.stopAsk != nil {
		l.stopAsk()
		<-l.done
	}
	if l.shown != nil {
		l.shown.End()
	}
}
