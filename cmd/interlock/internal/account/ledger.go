package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/feed"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/filelock"
	"github.com/interlockdev/interlock/writer/account"
)

// accountLogs reads the logs of accounts over HTTP, which every role may.
type accountLogs struct{ api *cli.API }

// Log is that of account.Source.
func (l accountLogs) Log(ctx context.Context, key interlock.Key, from uint64) iter.Seq2[interlock.LogEntry, error] {
	return func(yield func(interlock.LogEntry, error) bool) {
		for next := from; ; {
			query := url.Values{"from": {strconv.FormatUint(next, 10)}, "limit": {strconv.Itoa(cli.PageSize)}}
			_, answer, err := l.api.Do(
				ctx, cli.Request{Method: http.MethodGet, Path: view.MailboxPath(string(key)) + "/log", Query: query},
			)
			var page api.Log
			if err == nil {
				err = json.Unmarshal(answer, &page)
			}
			if err != nil {
				yield(interlock.LogEntry{}, err)
				return
			}
			for i := range page.Entries {
				entry, err := entryOf(&page.Entries[i], key)
				if !yield(entry, err) || err != nil {
					return
				}
			}
			if len(page.Entries) == 0 {
				return
			}
			next = page.Next
		}
	}
}

// entryOf is the entry as packages have it.
func entryOf(e *api.LogEntry, key interlock.Key) (x interlock.LogEntry, err error) {
	state, ok := interlock.ParseTaskState(e.State)
	if !ok || e.Document.Key == "" {
		return x, fmt.Errorf(
			"entry %d of %s cannot be read: is this client older than the server?", e.Seq, cli.Clean(string(key)),
		)
	}
	x = interlock.LogEntry{
		Seq: e.Seq, Kind: e.Kind, Body: e.Body, Sender: e.Sender, Agent: e.Agent, State: state, Reply: e.Reply,
		Reason: e.Reason,
		Worker: e.Worker, Session: e.Session, Attempt: e.Attempt, Fence: e.Fence, Changed: e.Changed, Age: cli.Millis(e.Age),
		Document: interlock.Document{Key: e.Document.Key, Version: e.Document.Version, Absent: e.Document.Absent},
	}
	x.Message, err = interlock.ParseTaskID(e.Message)
	return x, err
}

// ledgerKeeper keeps a ledger up to date with the accounts of a queue.
type ledgerKeeper struct {
	a        *cli.App
	api      *cli.API
	logs     accountLogs
	ledger   *account.Ledger
	queue    string
	prefixes []string                 // of the accounts' keys
	messages map[string]interlock.Key // that are not settled, as far as it has heard
}

// keepLedger makes a keeper for the accounts that have a queue as single writer.
func keepLedger(ctx context.Context, a *cli.App, queue string, l *account.Ledger) (*ledgerKeeper, error) {
	k := &ledgerKeeper{a: a, api: a.API(), ledger: l, queue: queue, messages: map[string]interlock.Key{}}
	k.logs = accountLogs{k.api}
	writers, err := writers(ctx, a)
	if err != nil {
		return nil, err
	}
	for _, w := range writers {
		if prefix, _, _ := strings.Cut(w.Shape, "{"); w.WriterQueue == queue {
			k.prefixes = append(k.prefixes, prefix)
		}
	}
	if k.prefixes == nil {
		return nil, fmt.Errorf(
			"queue %s is the single writer of no keys, so there are no accounts: name another one with --queue, or see `interlock writer list`",
			cli.Clean(queue),
		)
	}
	return k, nil
}

func (k *ledgerKeeper) concerns(key interlock.Key) bool {
	return slices.ContainsFunc(k.prefixes, func(prefix string) bool { return strings.HasPrefix(string(key), prefix) })
}

// sweep records every account: those that have a document, and those to which there are
// messages.
func (k *ledgerKeeper) sweep(ctx context.Context) error {
	done := map[interlock.Key]bool{}
	for _, prefix := range k.prefixes {
		err := k.pages(ctx, "/v1/state", url.Values{"prefix": {prefix}}, func(answer []byte) (string, error) {
			var page api.Documents
			if err := json.Unmarshal(answer, &page); err != nil {
				return "", err
			}
			for i := range page.Documents {
				d := &page.Documents[i]
				done[d.Key] = true
				again := func(ctx context.Context) (interlock.Document, error) { return k.document(ctx, d.Key) }
				if err := k.ledger.Verify(ctx, k.logs, interlock.Document{Key: d.Key, Version: d.Version}, again); err != nil {
					return "", err
				}
			}
			return page.Cursor, nil
		})
		if err != nil {
			return err
		}
	}
	return k.pages(ctx, "/v1/tasks", url.Values{"queue": {k.queue}}, func(answer []byte) (string, error) {
		var page api.TaskList
		if err := json.Unmarshal(answer, &page); err != nil {
			return "", err
		}
		for i := range page.Tasks {
			t := view.TaskOf(&page.Tasks[i])
			if len(t.Claims) != 1 || !k.concerns(t.Claims[0].Key) {
				continue
			}
			key := t.Claims[0].Key
			if !t.IsSettled() {
				k.messages[t.ID] = key
			}
			if !done[key] {
				done[key] = true
				if err := k.ledger.Record(ctx, k.logs, key); err != nil {
					return "", err
				}
			}
		}
		return page.Cursor, nil
	})
}

// document reads which version of an account there is. GET /v1/state/KEY would answer
// with the account itself, which does not say its version.
func (k *ledgerKeeper) document(ctx context.Context, key interlock.Key) (d interlock.Document, err error) {
	_, answer, err := k.api.Do(
		ctx, cli.Request{Method: http.MethodGet, Path: "/v1/state", Query: url.Values{"key": {string(key)}}},
	)
	if err != nil {
		return d, err
	}
	var got api.Documents
	if err := json.Unmarshal(answer, &got); err != nil {
		return d, err
	}
	if len(got.Documents) != 1 {
		return d, fmt.Errorf(
			"the server answers with %d documents for %s: is this client older than the server?", len(got.Documents),
			cli.Clean(string(key)),
		)
	}
	return interlock.Document{Key: key, Version: got.Documents[0].Version, Absent: got.Documents[0].Absent}, nil
}

// pages reads a list to its end.
func (k *ledgerKeeper) pages(
	ctx context.Context, path string, query url.Values, page func([]byte) (cursor string, err error),
) error {
	query.Set("limit", strconv.Itoa(cli.PageSize))
	for {
		_, answer, err := k.api.Do(ctx, cli.Request{Method: http.MethodGet, Path: path, Query: query})
		if err != nil {
			return err
		}
		cursor, err := page(answer)
		if err != nil || cursor == "" {
			return err
		}
		query.Set("cursor", cursor)
	}
}

// follow keeps the ledger up to date until ctx ends. ready is called once, as soon as it
// has everything. A server that does not answer is waited for; nil means that ctx ended.
func (k *ledgerKeeper) follow(ctx context.Context, ready func()) error {
	pace := &client.Backoff{Least: 250 * time.Millisecond}
	var told string
	for {
		r := &feed.Reader{App: k.a, API: k.api, Path: "/v1/events", Follow: true, Query: url.Values{"follow": {"true"}}}
		// Events from now on first, and then what there is: so nothing comes between.
		err := r.Start(ctx, "now")
		if err == nil {
			err = k.sweep(ctx)
		}
		if err == nil {
			if ready != nil {
				ready()
				ready = nil
			}
			pace, told = &client.Backoff{Least: 250 * time.Millisecond}, ""
			r.Each = func(e *view.Event) error { return k.heed(ctx, e) }
			err = r.Read(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case k.ledger.Err() != nil:
			return k.ledger.Err()
		case err != nil && !errors.Is(err, feed.ErrAgain) && !r.Again && !feed.ComesBack(err) &&
			!cli.IsRefused(err, interlock.CodeHistoryTrimmed):
			// History that is no longer kept does no harm: every account is looked at anew.
			return err
		}
		why := "the connection ended"
		if _, refused := errors.AsType[*interlock.Error](err); refused || err != nil && !errors.Is(err, feed.ErrAgain) {
			why = err.Error()
		}
		if why != told {
			told = why
			k.a.Complain("%s, connecting again", cli.Clean(why))
		}
		if pace.Wait(ctx, cli.RetryAfter(err)) != nil {
			return nil
		}
	}
}

// heed records the account that an event is about.
func (k *ledgerKeeper) heed(ctx context.Context, e *view.Event) error {
	key := k.messages[e.Task]
	if len(e.Claims) == 1 {
		key = e.Claims[0].Key
	}
	if key == "" || !k.concerns(key) {
		return nil
	}
	switch e.Event {
	case "task_submitted":
		k.messages[e.Task] = key
		return nil
	case "task_moved":
		if t := (view.Task{State: e.State}); !t.IsSettled() {
			return nil
		}
		delete(k.messages, e.Task)
	case "ended": // the lease of a message that was decided
	default:
		return nil
	}
	return k.ledger.Record(ctx, k.logs, key)
}

// openLedger opens the file of a ledger for this process alone; before are the files that it
// continues.
func openLedger(flag, name string, before []string) (l *account.Ledger, file *os.File, err error) {
	file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, cli.Usagef("%s: %w", flag, err)
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	switch held, err := filelock.Try(file); {
	case err != nil:
		return nil, nil, cli.Usagef("%s: %s: %w", flag, cli.Clean(name), err)
	case held:
		return nil, nil, cli.Usagef("%s: %s: another process writes it: each needs a file of its own", flag, cli.Clean(name))
	}
	var earlier []io.Reader
	for _, name := range before {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, cli.Usagef("--after: %w", err)
		}
		defer f.Close()
		earlier = append(earlier, f)
	}
	if l, err = account.OpenLedger(file, earlier...); err != nil {
		return nil, nil, fmt.Errorf(
			"%s: %w: nothing was added to it; keep it as evidence, and begin another one", cli.Clean(name), err,
		)
	}
	return l, file, nil
}

// wire returns the form of a ledger for people.
func wire(a *cli.App, l *account.Ledger, accept bool) {
	if accept {
		l.OnGap = func(gap *account.GapError) { a.Complain("%s", cli.Clean(gap.Error())) }
	}
	l.OnJump = func(key interlock.Key, after, next uint64) {
		a.Complain(
			"%s: entry %d comes after entry %d: the account has not changed between, but refusals may be missing",
			cli.Clean(string(key)), next, after,
		)
	}
}

// ledgerError adds what to do about a ledger that takes nothing more.
func ledgerError(err error) error {
	if _, ok := errors.AsType[*account.GapError](err); ok {
		return fmt.Errorf("%w: another ledger may have it; --accept-gaps continues, and records the gap in the ledger", err)
	}
	return cli.ExitWith(cli.ExitDisk, err)
}
