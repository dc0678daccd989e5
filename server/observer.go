package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/traceparent"
	"github.com/interlockdev/interlock/webhook"
)

// Observer counts events, and writes one log line per ended lease. Give the
// same one to the shard (it implements shard.Observer) and to Config, and Close
// it after the shard.
//
// No label of a metric is ever a key or an agent: their number has no bound. GET /v1/hot reports
// which keys are busy. The metrics by namespace name a bounded number of namespaces, patterns,
// organisations and groups (LimitSeries), and are shown to the role metrics only.
type Observer struct {
	figures *figures
	log     *slog.Logger
	flush   func() error
	lines   chan *endedLease
	many    chan struct{} // lines wait that should not collect any longer
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
	watched sync.Once
	limiter atomic.Pointer[limiter] // receives changed settings
	sender  atomic.Pointer[webhook.Sender]
	leavers leavers
}

// logBacklog is how many lines may wait for the log's reader. The shard must not wait for it, so
// above this lines are dropped, and counted.
const logBacklog = 4096

// linesCollect is how long lines collect before they are written together: to be woken for
// each of them would cost more than to write it.
const linesCollect = 4 * time.Millisecond

// linesMany are too many to let them collect any longer.
const linesMany = logBacklog / 4

// endedLease is a copy of the log line's content: events are valid during the call only.
type endedLease struct {
	at                             time.Time
	level                          slog.Level
	namespace, agent, flow, actor  string
	purpose, reason, outcome, mode string
	keys                           []string
	more                           int
	fence                          interlock.Fence
	held                           time.Duration
	trace                          string
}

// NewObserver makes one. Log lines go to logger; nil means that there are none. A logger that
// keeps them back gets flush called when some have been logged and none is waiting; nil
// means that it does not. One goroutine at a time calls either.
func NewObserver(logger *slog.Logger, flush func() error) *Observer {
	if flush == nil {
		flush = func() error { return nil }
	}
	o := &Observer{figures: newFigures(), log: logger, flush: flush}
	o.newWebhookFigures()
	if logger != nil {
		o.lines = make(chan *endedLease, logBacklog)
		o.many = make(chan struct{}, 1)
		o.stop, o.stopped = make(chan struct{}), make(chan struct{})
		go o.writeLines()
	}
	return o
}

// Close writes the remaining log lines and ends. Figures are still counted.
func (o *Observer) Close() {
	if o.log == nil {
		return
	}
	o.once.Do(func() { close(o.stop) })
	<-o.stopped
}

// Committed is called by the shard for each durable group of events.
func (o *Observer) Committed(events []record.Event) {
	for i := range events {
		ev := &events[i]
		o.figures.event(ev)
		if w := o.sender.Load(); w != nil {
			w.Committed(ev)
		}
		switch ev.Kind {
		case record.Configured:
			o.configured(ev)
		case record.NamespaceMoved:
			o.leavers.committed(ev)
		case record.NamespaceDeleted, record.NamespaceForgotten:
			if l := o.limiter.Load(); l != nil {
				l.configured(ev.Namespace, &interlock.Settings{})
			}
		}
		if ev.Kind == record.Ended && o.log != nil {
			if level := endLevel(ev.Reason); o.log.Enabled(context.Background(), level) {
				o.enqueue(ev, level)
			}
		}
	}
}

// configured passes changed settings on.
func (o *Observer) configured(ev *record.Event) {
	l := o.limiter.Load()
	if l == nil {
		return
	}
	if s, err := ev.Settings(); err == nil {
		l.configured(ev.Namespace, &s)
	}
}

// Appended is called by the shard after each append to the journal.
func (o *Observer) Appended(d time.Duration, entries, bytes int) {
	o.figures.appendSeconds.Observe(d.Seconds())
	o.figures.batchEntries.Observe(float64(entries))
	o.figures.batchBytes.Observe(float64(bytes))
}

// Lag is called by the shard with how long the oldest command of a group waited.
func (o *Observer) Lag(d time.Duration) { o.figures.lag.Observe(d.Seconds()) }

// Saved is called by the shard with how long a snapshot took.
func (o *Observer) Saved(d time.Duration) { o.figures.snapshotSeconds.Observe(d.Seconds()) }

// Answered counts the first answer to a command; both APIs call it. For a push
// (Warned, Lost) cmd is nil. Any number of goroutines may call it.
func (o *Observer) Answered(cmd engine.Command, eff *engine.Effect) {
	switch {
	case eff.Outcome == engine.Warned:
		o.figures.expiries[tierSoft].Inc()
	case eff.Code == interlock.CodeFenced:
		o.figures.fenceRefusals.Inc()
	}
	switch cmd.(type) {
	case *engine.Acquire, *engine.StartRun:
		o.figures.acquired(eff)
	case *engine.Commit:
		o.figures.commit(eff)
	}
}

// endLevel returns the log level of a lease that ended: debug if its holder ended it.
func endLevel(why record.Reason) slog.Level {
	switch why {
	case record.ByRelease, record.BySession, record.ByConversion:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// maxLoggedKeys bounds a log line.
const maxLoggedKeys = 8

func (o *Observer) enqueue(ev *record.Event, level slog.Level) {
	line := &endedLease{
		at: time.Unix(0, int64(ev.At)), level: level,
		namespace: string(ev.Namespace), agent: ev.Agent, flow: ev.Flow, actor: ev.Actor,
		purpose: ev.Purpose, reason: ev.Reason.String(), outcome: ev.Outcome, fence: ev.Fence, held: ev.Held, trace: ev.Trace,
		mode: strongest(ev.Claims).String(),
	}
	for i := range ev.Claims {
		if i == maxLoggedKeys {
			line.more = len(ev.Claims) - i
			break
		}
		line.keys = append(line.keys, string(ev.Claims[i].Key))
	}
	select {
	case o.lines <- line:
	default:
		o.figures.droppedLines.Inc()
	}
	if len(o.lines) > linesMany {
		select {
		case o.many <- struct{}{}:
		default:
		}
	}
}

// writeLines writes a line at once if none came just before, and then what has collected.
func (o *Observer) writeLines() {
	defer close(o.stopped)
	for {
		select {
		case line := <-o.lines:
			o.write(line)
			o.writeWaiting()
		case <-o.stop:
			o.writeWaiting()
			return
		}
		pause := time.NewTimer(linesCollect)
		select {
		case <-pause.C:
		case <-o.many:
		case <-o.stop:
		}
		pause.Stop()
	}
}

// writeWaiting writes the lines that wait.
func (o *Observer) writeWaiting() {
	for {
		select {
		case line := <-o.lines:
			o.write(line)
		default:
			_ = o.flush() // a log that fails cannot be reported
			return
		}
	}
}

// write logs an ended lease. Neither the lease's id nor its session's is in it.
func (o *Observer) write(l *endedLease) {
	attrs := make([]slog.Attr, 0, 16)
	add := func(name, text string) {
		if text != "" {
			attrs = append(attrs, slog.String(name, cleanText(text)))
		}
	}
	add("namespace", l.namespace)
	attrs = append(attrs, slog.Any("keys", l.keys))
	if l.more > 0 {
		attrs = append(attrs, slog.Int("more_keys", l.more))
	}
	add("mode", l.mode)
	attrs = append(attrs, slog.Uint64("fence", uint64(l.fence)))
	add("agent", l.agent)
	add("flow", l.flow)
	add("purpose", l.purpose)
	add("reason", l.reason)
	add("outcome", l.outcome)
	attrs = append(attrs, slog.Int64("held_ms", l.held.Milliseconds()))
	add("actor", l.actor)
	if c, ok := traceparent.Parse(l.trace); ok {
		add("trace_id", c.TraceID)
		add("span_id", c.ParentID)
		add("trace_flags", c.Flags)
	}
	ctx := context.Background()
	record := slog.NewRecord(l.at, l.level, "lease ended", 0)
	record.AddAttrs(attrs...)
	_ = o.log.Handler().Handle(ctx, record) // a log that fails cannot be reported
}

// strongest returns the mode that a request is counted under.
func strongest(claims []interlock.Claim) (m interlock.Mode) {
	for i := range claims {
		m = max(m, claims[i].Mode)
	}
	return m
}
