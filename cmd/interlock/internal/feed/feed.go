package feed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// Reader reads events, connection after connection.
type Reader struct {
	App    *cli.App
	API    *cli.API
	Path   string
	Query  url.Values
	Text   func(line []byte) (string, error) // what is shown of one
	Each   func(*view.Event) error           // if set, is given each instead
	Follow bool
	next   interlock.Index // where to go on; 0: the oldest that is kept
	// An entry can hold several events and a connection can end between them, so the
	// last entry is asked for again, and as many of its events passed over.
	seen, skip int
	Again      bool // the stream ended with a word of the server that it can be taken up again
}

// Start sets where the reader begins: at the oldest event, after the newest, or at an index.
func (r *Reader) Start(ctx context.Context, from string) error {
	if from == "" {
		from = "oldest"
		if r.Follow {
			from = "now"
		}
	}
	switch from {
	case "oldest":
		return nil
	case "now":
		_, answer, err := r.API.Do(ctx, cli.Request{Method: http.MethodGet, Path: "/healthz"})
		if err != nil {
			return err
		}
		var health api.Status
		if err := cli.Decode(answer, &health); err != nil {
			return err
		}
		r.next = health.At.Index + 1
		return nil
	}
	index, err := strconv.ParseUint(from, 10, 64)
	if err != nil || index == 0 {
		return cli.Usagef("--from %s: want an index such as 1041, oldest, or now", cli.Clean(from))
	}
	r.next = interlock.Index(index)
	return nil
}

// ErrAgain reports that the stream ended without a reason and can be taken up again.
var ErrAgain = errors.New("the answer was cut off, so there may be more events than were shown: repeat the command")

// Run reads until the end, or with --follow until ctx ends.
func (r *Reader) Run(ctx context.Context) error {
	var pace *client.Backoff
	var told string
	for {
		before, seen := r.next, r.seen
		err := r.Read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // interrupted, as asked
		case err == nil && !r.Follow:
			return nil
		case err != nil && !errors.Is(err, ErrAgain) && !r.Again && !ComesBack(err):
			return err
		case err != nil && !r.Follow:
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
			r.App.Complain("%s, connecting again", cli.Clean(why))
		}
		if pace.Wait(ctx, cli.RetryAfter(err)) != nil {
			return nil
		}
	}
}

// ComesBack reports whether a server may be there again in a moment.
func ComesBack(err error) bool {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal.Code.Retryable()
	}
	return cli.ExitCode(err) == cli.ExitUnreachable
}

// Read reads one stream.
func (r *Reader) Read(ctx context.Context) error {
	if r.next > 0 {
		r.Query.Set("from", r.next.String())
	}
	r.skip, r.Again = r.seen, false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := cli.Request{
		Method: http.MethodGet, Path: r.Path, Query: r.Query, Header: http.Header{"Accept": {"application/x-ndjson"}},
	}
	res, err := r.API.Client.Send(ctx, req)
	if err != nil {
		return r.API.Explain(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, _, err := r.API.Do(ctx, req) // once more, to read the refusal whole
		if err == nil {
			err = ErrAgain
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
	if lines.Err() != nil || r.Follow {
		return ErrAgain
	}
	return nil
}

func (r *Reader) line(line []byte) error {
	var e struct {
		api.StreamEnd
		Index interlock.Index `json:"index,string"` // of an event, and of a line that keeps the stream alive
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
		r.Again = e.Retryable
		if e.Code == interlock.CodeMoving { // all events of this shard have come: go on in the next one
			r.next, r.seen = 0, 0
			r.Query.Set("from", "arrival")
		}
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
	if r.Each != nil {
		var e view.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		return r.Each(&e)
	}
	if r.App.JSON() {
		return r.App.Content(append(line, '\n'))
	}
	text, err := r.Text(line)
	if err == nil {
		_, err = fmt.Fprintln(r.App.Out, text)
	}
	return err
}
