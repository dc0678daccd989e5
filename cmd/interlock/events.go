package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

func newEvents(a *app) *cobra.Command {
	var follow bool
	var from string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show the journal's events, or follow them",
		Long: `Show the events of the journal, oldest first: requests, grants, and the ends of leases. With
--follow it begins now and continues until it is interrupted, also across restarts of the
server; nothing is left out.

When the server cannot send all that it has, the command reports the reason and ends with an
exit code other than 0; with --follow it reports it and continues as soon as it can.

With -o json each event is one line of JSON.`,
		Example: `  interlock events --follow
  interlock events --from 1041
  interlock events -o json | jq 'select(.event == "ended" and .reason == "ttl")'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			r := &eventReader{a: a, api: a.api(), path: "/v1/events", follow: follow}
			r.query = url.Values{"follow": {strconv.FormatBool(follow)}}
			r.text = func(line []byte) (string, error) {
				var e event
				err := json.Unmarshal(line, &e)
				return e.line(a), err
			}
			if err := r.start(ctx, from); err != nil {
				return err
			}
			return r.run(ctx)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow new events")
	cmd.Flags().StringVar(
		&from, "from", "", "the `index` to begin at, oldest, or now (default: oldest, with --follow now)",
	)
	return cmd
}

// eventReader reads events, connection after connection.
type eventReader struct {
	a      *app
	api    *httpAPI
	path   string
	query  url.Values
	text   func(line []byte) (string, error) // what is shown of one
	each   func(*event) error                // if set, is given each instead
	follow bool
	next   interlock.Index // where to go on; 0: the oldest that is kept
	// An entry can hold several events and a connection can end between them, so the
	// last entry is asked for again, and as many of its events passed over.
	seen, skip int
	again      bool // the stream ended with a word of the server that it can be taken up again
}

func (r *eventReader) start(ctx context.Context, from string) error {
	if from == "" {
		from = "oldest"
		if r.follow {
			from = "now"
		}
	}
	switch from {
	case "oldest":
		return nil
	case "now":
		_, answer, err := r.api.do(ctx, request{Method: http.MethodGet, Path: "/healthz"})
		if err != nil {
			return err
		}
		var health struct{ At at }
		if err := json.Unmarshal(answer, &health); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		r.next = health.At.Index + 1
		return nil
	}
	index, err := strconv.ParseUint(from, 10, 64)
	if err != nil || index == 0 {
		return usage("--from %s: want an index such as 1041, oldest, or now", clean(from))
	}
	r.next = interlock.Index(index)
	return nil
}

// errAgain reports that the stream ended without a reason and can be taken up again.
var errAgain = errors.New("the answer was cut off, so there may be more events than were shown: repeat the command")

// run reads until the end, or with --follow until ctx ends.
func (r *eventReader) run(ctx context.Context) error {
	var pace *client.Backoff
	var told string
	for {
		before, seen := r.next, r.seen
		err := r.read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // interrupted, as asked
		case err == nil && !r.follow:
			return nil
		case err != nil && !errors.Is(err, errAgain) && !r.again && !comesBack(err):
			return err
		case err != nil && !r.follow:
			return err
		}
		why := "the connection ended"
		if refusal, ok := errors.AsType[*interlock.Error](err); ok {
			why = refusal.Error()
		}
		if pace == nil || r.next != before || r.seen != seen {
			pace, told = &client.Backoff{Least: 250 * time.Millisecond}, ""
		}
		if why != told {
			told = why
			r.a.complain("%s, connecting again", clean(why))
		}
		if pace.Wait(ctx, estimate(err)) != nil {
			return nil
		}
	}
}

// comesBack reports whether a server may be there again in a moment.
func comesBack(err error) bool {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal.Code.Retryable()
	}
	return exitCode(err) == exitUnreachable
}

// read reads one stream.
func (r *eventReader) read(ctx context.Context) error {
	if r.next > 0 {
		r.query.Set("from", r.next.String())
	}
	r.skip, r.again = r.seen, false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := request{
		Method: http.MethodGet, Path: r.path, Query: r.query, Header: http.Header{"Accept": {"application/x-ndjson"}},
	}
	res, err := r.api.client.Send(ctx, req)
	if err != nil {
		return r.api.explain(nil, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, _, err := r.api.do(ctx, req) // once more, to read the refusal whole
		if err == nil {
			err = errAgain
		}
		return err
	}
	// The server sends something every 15 s. A client that receives nothing for much longer has
	// lost it.
	silence := time.AfterFunc(45*time.Second, cancel)
	defer silence.Stop()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 64<<10), 4<<20)
	for lines.Scan() {
		silence.Reset(45 * time.Second)
		if err := r.line(lines.Bytes()); err != nil {
			return err
		}
	}
	if lines.Err() != nil || r.follow {
		return errAgain
	}
	return nil
}

func (r *eventReader) line(line []byte) error {
	var e struct {
		Event     string
		Index     interlock.Index `json:"index,string"`
		Retryable bool
		Code      interlock.Code
		Detail    string
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("an event cannot be read (%w): is this client older than the server?", err)
	}
	switch e.Event {
	case "keep_alive":
		if e.Index >= r.next {
			r.next, r.seen = e.Index+1, 0
		}
		return nil
	case "end":
		r.again = e.Retryable
		return &interlock.Error{Code: e.Code, Message: e.Detail}
	}
	if e.Index == r.next && r.skip > 0 {
		r.skip--
		return nil
	}
	if e.Index != r.next {
		r.next, r.seen, r.skip = e.Index, 0, 0
	}
	r.seen++
	if r.each != nil {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		return r.each(&e)
	}
	if r.a.json() {
		return r.a.content(append(line, '\n'))
	}
	text, err := r.text(line)
	if err == nil {
		_, err = fmt.Fprintln(r.a.out, text)
	}
	return err
}
