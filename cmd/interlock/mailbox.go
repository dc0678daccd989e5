package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

func newMailbox(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mailbox",
		Short: "Send messages to the single writer of a key",
		Long: `Keys with a single writer are changed by the workers of one queue only: all other callers
send messages, and the workers handle them, for each key one at a time, in order per sender,
with the key's state at hand. The key's log has the decisions.

docs/mailbox.md is a guide.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMailboxSend(a, "send"), newMailboxSend(a, "ask"), newMailboxLog(a), newMailboxWriter(a))
	return cmd
}

func mailboxPath(key string) string { return resourcePath("mailbox", key) }

// newMailboxSend makes send, and ask, which waits for the reply.
func newMailboxSend(a *app, verb string) *cobra.Command {
	var s taskFlags
	var follow followFlags
	cmd := &cobra.Command{
		Use:   verb + " KEY KIND [BODY]",
		Short: "Send a message to the writer of a key",
		Long: `Send a message to the single writer of KEY, and print its id: it is a task, so that
"interlock task wait" waits for its reply. KIND is the operation. BODY is JSON, @FILE with
JSON, or - for standard input.

Messages of one sender to one key are handled in the order in which they were sent. The
sender is the session, else the credential, else the agent: use --agent to set it.`,
		Example: `  interlock mailbox send account:12345 credit '{"cents": 2000}' --agent support-2 --purpose "goodwill"
  interlock mailbox send account:12345 close --question "close the account of a customer since 2009?"`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < 2:
				return usage("name the key and the kind: %s", useLine(cmd))
			case len(args) > 3:
				return usage("too many arguments: %s", useLine(cmd))
			}
			return nil
		},
		ValidArgsFunction: a.completeKeys(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			body := map[string]any{"kind": args[1]}
			if len(args) == 3 {
				if body["body"], err = jsonArg(a.in, args[2], "the body", interlock.MaxPayloadBytes); err != nil {
					return err
				}
			}
			if verb == "ask" && follow.wait == 0 {
				return usage("--wait 0: to wait for a reply takes a while; `interlock mailbox send` does not wait")
			}
			if err := s.fields(body); err != nil {
				return err
			}
			r := request{Method: http.MethodPost, Path: mailboxPath(args[0]), Body: body, ID: s.id, Again: true}
			return follow.begin(cmd.Context(), a, r, &s.caller)
		},
	}
	s.flags(cmd)
	if verb == "ask" {
		cmd.Short = "Send a message to the writer of a key, and print its reply"
		cmd.Long = `Send a message to the single writer of KEY, wait for its reply and print it. KIND is the
operation. BODY is JSON, @FILE with JSON, or - for standard input.

A wait with a session, as inside "interlock run" and "interlock task work", counts as a wait
of the holder of that session's leases: if the writer, or a message before this one, waits
for them in turn, the command reports the deadlock and ends. The message stays.

` + followExits
		cmd.Example = `  interlock mailbox ask account:12345 credit '{"cents": 2000}' --wait 30s
  balance=$(interlock mailbox ask account:12345 balance | jq .cents)`
		follow.flags(cmd, forever)
	}
	return cmd
}

// logEntry is one entry in the log of a key.
type logEntry struct {
	Seq      uint64          `json:"seq,string"`
	Message  string          `json:"message"`
	Kind     string          `json:"kind"`
	Body     json.RawMessage `json:"body"`
	Sender   string          `json:"sender"`
	Agent    string          `json:"agent"`
	State    string          `json:"state"`
	Reply    json.RawMessage `json:"reply"`
	Reason   string          `json:"reason"`
	Worker   string          `json:"worker"`
	Session  string          `json:"session"`
	Attempt  int             `json:"attempt"`
	Fence    interlock.Fence `json:"fence,string"`
	Document *document       `json:"document"`
	Changed  bool            `json:"changed"`
	Age      int64           `json:"age_ms"`
}

func newMailboxLog(a *app) *cobra.Command {
	var from uint64
	var limit int
	cmd := &cobra.Command{
		Use:   "log KEY",
		Short: "Show the log of a key's single writer",
		Long: `Show the log of KEY: each handled message, its outcome, and the resulting state, oldest
first. The log is append-only; entries beyond its bounds are forgotten from its beginning.
With -o json nothing is cut.`,
		Example: `  interlock mailbox log account:12345
  interlock mailbox log account:12345 --from 41 -o json | jq -c '.entries[] | [.kind, .reply]'`,
		Args:              oneArg("a key"),
		ValidArgsFunction: a.completeKeys(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage("--limit %d: want at least 1", limit)
			}
			return a.showLog(cmd.Context(), args[0], from, limit)
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "begin at the entry with this `number`")
	cmd.Flags().IntVar(&limit, "limit", 10_000, "how many entries to show at most")
	return cmd
}

// showLog prints up to limit entries of a log, page after page. With -o json each page
// is printed as it came.
func (a *app) showLog(ctx context.Context, key string, from uint64, limit int) error {
	shown := 0
	for next := from; shown < limit; {
		query := url.Values{"from": {strconv.FormatUint(next, 10)}, "limit": {strconv.Itoa(min(pageSize, limit-shown))}}
		_, answer, err := a.api().do(ctx, request{Method: http.MethodGet, Path: mailboxPath(key) + "/log", Query: query})
		var page struct {
			Entries []logEntry `json:"entries"`
			First   uint64     `json:"first,string"`
			Next    uint64     `json:"next,string"`
		}
		if err == nil {
			err = json.Unmarshal(answer, &page)
		}
		if a.json() && answer != nil && (shown == 0 || len(page.Entries) > 0) {
			err = errors.Join(err, a.raw(answer))
		}
		if err != nil {
			return err
		}
		if shown == 0 && page.First > max(from, 1) {
			a.complain("the entries before %d are forgotten", page.First)
		}
		for i := range page.Entries {
			if !a.json() {
				a.showEntry(&page.Entries[i])
			}
		}
		shown += len(page.Entries)
		if next = page.Next; len(page.Entries) == 0 {
			break
		}
	}
	switch {
	case a.json():
	case shown == 0:
		a.complain(
			"no message to %s was handled yet: `interlock task ls --key %s` shows those that wait", clean(key),
			quote(clean(key)),
		)
	case shown == limit:
		a.complain("there may be more: --limit shows it")
	}
	return nil
}

// showEntry prints an entry of a log:
//
//	41  credit {"cents":2000}, from support-2 3.0s ago
//	    done by teller-1, attempt 1, fence 17: {"balance":8000}
//	    version 43: {"cents":8000}
func (a *app) showEntry(e *logEntry) {
	head := strings.TrimSpace(clean(e.Kind) + " " + clean(string(e.Body)))
	from := ", from " + party{Agent: e.Agent}.name() + " " + short(ms(e.Age)) + " ago"
	number := strconv.FormatUint(e.Seq, 10)
	room := tableWidth - len(number) - 2
	indent := strings.Repeat(" ", len(number)+2)
	a.say("%s  %s%s\n", a.tint(bold, number), cut(head, max(room-len([]rune(from)), 20)), from)

	t := task{State: e.State}
	text := clean(e.State)
	if e.Fence > 0 {
		if !t.is(interlock.TaskDone) {
			text += ", last tried"
		}
		text += " by " + party{Agent: e.Worker, Session: e.Session}.name() + ", attempt " + strconv.Itoa(e.Attempt) +
			", fence " + e.Fence.String()
	}
	switch {
	case len(e.Reply) > 0:
		text += ": " + clean(string(e.Reply))
	case e.Reason != "":
		text += ": " + clean(e.Reason)
	}
	a.say("%s%s\n", indent, a.tint(t.stateColour(), cut(text, room)))
	if d := e.Document; e.Changed && d != nil {
		text := "version " + d.Version.String() + ": "
		switch body, err := d.body(); {
		case d.Absent:
			text += "removed"
		case err == nil && len(body) > 0:
			text += clean(string(body))
		default:
			text += bytesText(d.Size) + " of " + orDash(clean(d.Type))
		}
		a.say("%s%s\n", indent, cut(text, room))
	}
}

func newMailboxWriter(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "writer",
		Short: "Manage the single writers of key patterns",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWriterSet(a), newWriterLs(a), newWriterRm(a))
	return cmd
}

func writerPath(pattern string) string { return "/v1/writers/" + url.PathEscape(pattern) }

func newWriterSet(a *app) *cobra.Command {
	var queue, shape string
	cmd := &cobra.Command{
		Use:   "set PATTERN",
		Short: "Make a queue the single writer of a key pattern",
		Long: `Have the workers of --queue be the single writer of the keys of the pattern named PATTERN:
from now on a document at one of them changes only when such a worker acknowledges a
message to it. The queue must exist. The pattern must, too, unless --shape makes it.`,
		Example: `  interlock queue set accounts
  interlock mailbox writer set account --queue accounts --shape 'account:{id}'
  interlock task work accounts -- ./account-agent`,
		Args:              oneArg("a pattern"),
		ValidArgsFunction: a.completePatterns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if queue == "" {
				return usage("--queue is missing: name the queue that may write")
			}
			body := map[string]any{"queue": queue}
			if shape != "" {
				body["pattern"] = shape
			}
			r := request{Method: http.MethodPut, Path: writerPath(args[0]), Body: body, ID: freshID(), Again: true}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("set: queue %s is the single writer of pattern %s\n", clean(queue), clean(args[0]))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&queue, "queue", "", "the `queue` of the workers that may write")
	cmd.Flags().StringVar(
		&shape, "shape", "", "the pattern's `shape`, such as 'account:{id}', if there is no such pattern yet",
	)
	_ = cmd.RegisterFlagCompletionFunc(
		"queue", func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return a.completeQueues(cmd, nil, prefix)
		},
	)
	return cmd
}

func newWriterLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the key patterns that have a queue as single writer",
		Example: "  interlock mailbox writer ls",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got struct {
				Writers []struct {
					Name  string `json:"name"`
					Shape string `json:"pattern"`
					Queue string `json:"queue"`
				}
			}
			return a.get(cmd.Context(), "/v1/writers", nil, &got, func() error {
				if len(got.Writers) == 0 {
					a.complain("no queue is a single writer: `interlock mailbox writer set` makes it one")
					return nil
				}
				t := a.table("PATTERN", "SHAPE", "QUEUE")
				for _, w := range got.Writers {
					t.row(clean(w.Name), clean(w.Shape), clean(w.Queue))
				}
				return t.write(a.out)
			})
		},
	}
}

func newWriterRm(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "rm PATTERN",
		Short:             "Remove the single writer of a key pattern",
		Example:           "  interlock mailbox writer rm account",
		Args:              oneArg("a pattern"),
		ValidArgsFunction: a.completePatterns,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := request{Method: http.MethodDelete, Path: writerPath(args[0]), ID: freshID(), Again: true}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("removed: pattern %s has no single writer any more\n", clean(args[0]))
				return nil
			})
		},
	}
}
