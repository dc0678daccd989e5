package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// waiterRow shows how a request stands in line, asking now and then.
type waiterRow struct {
	r        *runInvocation
	c        *client.Client
	around   *neighbours // nil: nothing waits while this waits
	deadline time.Time
	cancel   context.CancelCauseFunc

	declared func()
	shown    *waitLine
	stopAsk  context.CancelFunc
	done     chan struct{}
}

var errOwnLease = errors.New("waiting would never end")

// queued is called by the client when the request has a place.
func (l *waiterRow) queued(ticket interlock.Ticket, holders []interlock.Holder) {
	if own := ownHolder(holders); own != nil {
		l.cancel(fmt.Errorf("%w: %s is held by the lease under which this command runs (fence %s in INTERLOCK_FENCE): run it without a lease of its own, or on other keys",
			errOwnLease, clean(string(own.Key)), own.Fence))
		return
	}
	if l.around != nil && l.declared == nil {
		l.declared = l.around.awaits(l.c.SessionName(), l.cancel)
	}
	if l.r.quiet {
		return
	}
	list := make([]holder, len(holders))
	for i := range holders {
		list[i] = holderOf(&holders[i])
	}
	first := l.shown == nil
	if first {
		l.shown = l.r.a.waitLine(l.r.wanted(), l.r.q.Parties, l.deadline)
	}
	l.shown.queued(ticket.Position, ticket.Length, ticket.ETA, list)
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

// ownHolder finds the lease of a command that runs this one.
func ownHolder(holders []interlock.Holder) *interlock.Holder {
	fence, keys := os.Getenv("INTERLOCK_FENCE"), strings.Split(os.Getenv("INTERLOCK_KEYS"), "\n")
	for i := range holders {
		if h := &holders[i]; h.Fence.String() == fence && slices.Contains(keys, string(h.Key)) {
			return h
		}
	}
	return nil
}

// ask looks at the keys until ctx ends: the stream tells of the end of the wait
// only. Without an answer the line stays as it was.
func (l *waiterRow) ask(ctx context.Context) {
	pace := client.Backoff{Least: 2 * time.Second, Most: 30 * time.Second}
	if l.shown.live {
		pace.Least, pace.Most = 500*time.Millisecond, 5*time.Second
	}
	api := l.r.a.api()
	for eta := time.Duration(0); pace.Wait(ctx, eta) == nil; {
		var place *waiter
		var at keyAnswer
		for _, c := range l.r.claims[:min(len(l.r.claims), 8)] {
			_, answer, err := api.do(ctx, request{Method: http.MethodGet, Path: keyPath(string(c.Key))})
			var k keyAnswer
			if err != nil || json.Unmarshal(answer, &k) != nil {
				continue
			}
			i := slices.IndexFunc(k.Line, func(w waiter) bool { return w.Session == l.c.SessionName() })
			if i >= 0 && (place == nil || k.Line[i].ETA > place.ETA) {
				place, at = &k.Line[i], k
			}
		}
		if place != nil {
			eta = ms(place.ETA)
			l.shown.queued(place.Position, at.Length, eta, at.Holders)
		}
	}
}

func (l *waiterRow) holders() []holder {
	if l.shown == nil {
		return nil
	}
	l.shown.mu.Lock()
	defer l.shown.mu.Unlock()
	return l.shown.holders
}

// end takes what is shown away. It may be called more than once.
func (l *waiterRow) end() {
	if l.declared != nil {
		l.declared()
	}
	if l.stopAsk != nil {
		l.stopAsk()
		<-l.done
	}
	if l.shown != nil {
		l.shown.end()
	}
}
