package trace

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/otlp"
	"github.com/interlockdev/interlock/internal/spans"
)

// batch is how many spans a request to the collector, or a line, has.
const batch = 512

// export is one run of the command.
type export struct {
	app          *cli.App
	since, until time.Time // until is zero for now
	key, agent   string
	resource     spans.Resource
	sender       *otlp.Sender // nil: spans are written to standard output
	endpoint     string

	pending []spans.Span
	sent    int
	known   map[spans.SpanID]bool // spans so far
	targets map[spans.SpanID]int  // links to spans that were not seen so far
	leftOut int                   // bars, tasks and refusals
}

// run exports everything, and reports what was left out.
func (e *export) run(ctx context.Context) error {
	e.known, e.targets = map[spans.SpanID]bool{}, map[spans.SpanID]int{}
	err := e.part(ctx, e.since, e.until)
	if err == nil {
		err = e.flush(ctx, 1)
	}
	if err != nil {
		if e.sent > 0 {
			err = fmt.Errorf("%w; %s exported before that, and the same command exports all of them again",
				err, cli.Count(e.sent, "span was", "spans were"))
		}
		return err
	}
	where := ""
	if e.sender != nil {
		where = " to " + cli.Clean(e.endpoint)
	}
	e.app.Complain("exported %s%s", cli.Count(e.sent, "span", "spans"), where)
	if e.leftOut > 0 {
		e.app.Complain("%s left out, because too much ended at the same moment: choose a key or an agent",
			cli.Count(e.leftOut, "span is", "spans are"))
	}
	if lost := e.unseen(); lost > 0 {
		e.app.Complain("%s not among these, because what they lead to ended earlier, or still goes on",
			cli.Count(lost, "target of a link is", "targets of links are"))
	}
	return nil
}

// unseen counts the links to spans that were not exported.
func (e *export) unseen() (n int) {
	for id, links := range e.targets {
		if !e.known[id] {
			n += links
		}
	}
	return n
}

// part exports what ended within a time, answer by answer.
func (e *export) part(ctx context.Context, since, until time.Time) error {
	for {
		t, err := e.ask(ctx, since, until)
		if err != nil {
			return err
		}
		e.leftOut += t.MoreBars + t.MoreTasks + t.MoreMarks
		if err := e.add(ctx, t, t.Until); err != nil {
			return err
		}
		if !t.More {
			return nil
		}
		if !t.Until.After(since) {
			return fmt.Errorf(
				"the server gets no further than %s, because one moment has too much: continue with --since %s",
				t.Until.UTC().Format(time.RFC3339Nano), since.Add(time.Second).UTC().Format(time.RFC3339),
			)
		}
		since = t.Until
	}
}

// ask asks for the timeline of a time.
func (e *export) ask(ctx context.Context, since, until time.Time) (*api.Timeline, error) {
	query := url.Values{"ended": {"true"}, "since": {since.UTC().Format(time.RFC3339Nano)}}
	if !until.IsZero() {
		query.Set("until", until.UTC().Format(time.RFC3339Nano))
	}
	for name, value := range map[string]string{"key": e.key, "agent": e.agent} {
		if value != "" {
			query.Set(name, value)
		}
	}
	_, answer, err := e.app.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: "/v1/timeline", Query: query})
	if err != nil {
		return nil, err
	}
	var t api.Timeline
	if err := cli.Decode(answer, &t); err != nil {
		return nil, err
	}
	return &t, nil
}

// add takes the spans of an answer that ended before its end.
func (e *export) add(ctx context.Context, t *api.Timeline, end time.Time) error {
	for _, s := range spans.Of(e.app.Server.Tenant(), t, end) {
		if e.known[s.ID] {
			continue
		}
		e.known[s.ID] = true
		for i := range s.Links {
			e.targets[s.Links[i].Span]++
		}
		e.pending = append(e.pending, s)
	}
	return e.flush(ctx, batch)
}

// flush exports what is pending in batches, as long as there are so many spans.
func (e *export) flush(ctx context.Context, least int) error {
	for len(e.pending) >= least {
		n := min(batch, len(e.pending))
		body, err := e.resource.Encode(e.pending[:n])
		if err != nil {
			return err
		}
		if e.sender == nil {
			err = e.app.Content(body)
		} else if err = e.sender.Traces(ctx, body); err != nil {
			err = cli.ExitWith(cli.ExitUnreachable, fmt.Errorf(
				"the spans cannot be sent to %s: %w: is it a collector for OTLP over HTTP, which usually has port 4318?",
				cli.Clean(e.endpoint), err,
			))
		}
		if err != nil {
			return err
		}
		e.sent += n
		e.pending = e.pending[n:]
	}
	return nil
}
