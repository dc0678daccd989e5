package message

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
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/task"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command message.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"message", "Send messages to the single writer of a key",
		`Keys with a single writer are changed by the workers of one queue only: all other callers
send messages, and the workers handle them, for each key one at a time, in order per sender,
with the key's state at hand. The key's log has the decisions.

docs/mailbox.md is a guide.`,
		newSend(a, "send"), newSend(a, "ask"), newLog(a),
	)
}

// newSend makes send, and ask, which waits for the reply.
func newSend(a *cli.App, verb string) *cobra.Command {
	var s task.Flags
	var follow task.FollowFlags
	cmd := &cobra.Command{
		Use:   verb + " KEY KIND [BODY]",
		Short: "Send a message to the writer of a key",
		Long: `Send a message to the single writer of KEY, and print its id: it is a task, so that
"interlock task wait" waits for its reply. KIND is the operation. BODY is JSON, @FILE with
JSON, or - for standard input.

Messages of one sender to one key are handled in the order in which they were sent. The
sender is the session, else the credential, else the agent: use --agent to set it.`,
		Example: `  interlock message send account:12345 credit '{"cents": 2000}' --agent support-2 --purpose "goodwill"
  interlock message send account:12345 close --question "close the account of a customer since 2009?"`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < 2:
				return cli.Usagef("name the key and the kind: %s", cli.UseLine(cmd))
			case len(args) > 3:
				return cli.Usagef("too many arguments: %s", cli.UseLine(cmd))
			}
			return nil
		},
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var body api.SendRequest
			body.Kind = args[1]
			if len(args) == 3 {
				if body.Payload, err = cli.JSONArg(a.In, args[2], "the body", interlock.MaxPayloadBytes); err != nil {
					return err
				}
			}
			if verb == "ask" && follow.Wait == 0 {
				return cli.Usagef("--wait 0: to wait for a reply takes a while; `interlock message send` does not wait")
			}
			if err := s.Fill(&body.Sender, &body.Work); err != nil {
				return err
			}
			r := cli.Request{
				Method: http.MethodPost, Path: view.MailboxPath(args[0]), Body: &body, ID: s.ID, Again: true,
				Header: cli.Traceparent(),
			}
			return follow.Begin(cmd.Context(), a, r, &s.Caller, &body.Wait)
		},
	}
	s.Define(cmd)
	if verb == "ask" {
		cmd.Short = "Send a message to the writer of a key, and print its reply"
		cmd.Long = `Send a message to the single writer of KEY, wait for its reply and print it. KIND is the
operation. BODY is JSON, @FILE with JSON, or - for standard input.

A wait with a session, as inside "interlock run" and "interlock task work", counts as a wait
of the holder of that session's leases: if the writer, or a message before this one, waits
for them in turn, the command reports the deadlock and ends. The message stays.

` + task.FollowExits
		cmd.Example = `  interlock message ask account:12345 credit '{"cents": 2000}' --wait 30s
  balance=$(interlock message ask account:12345 balance | jq .cents)`
		follow.Define(cmd, cli.Forever)
	}
	return cmd
}

func newLog(a *cli.App) *cobra.Command {
	var from uint64
	var limit int
	cmd := &cobra.Command{
		Use:   "log KEY",
		Short: "Show the log of a key's single writer",
		Long: `Show the log of KEY: each handled message, its outcome, and the resulting state, oldest
first. The log is append-only; entries beyond its bounds are forgotten from its beginning.
With -o json nothing is cut.`,
		Example: `  interlock message log account:12345
  interlock message log account:12345 --from 41 -o json | jq -c '.entries[] | [.kind, .reply]'`,
		Args:              cli.OneArg("a key"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return cli.Usagef("--limit %d: want at least 1", limit)
			}
			return showLog(cmd.Context(), a, args[0], from, limit)
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "begin at the entry with this `number`")
	cmd.Flags().IntVar(&limit, "limit", 10_000, "how many entries to show at most")
	return cmd
}

// showLog prints up to limit entries of a log, page after page. With -o json each page
// is printed as it came.
func showLog(ctx context.Context, a *cli.App, key string, from uint64, limit int) error {
	shown := 0
	for next := from; shown < limit; {
		query := url.Values{"from": {strconv.FormatUint(next, 10)}, "limit": {strconv.Itoa(min(cli.PageSize, limit-shown))}}
		_, answer, err := a.API().Do(
			ctx, cli.Request{Method: http.MethodGet, Path: view.MailboxPath(key) + "/log", Query: query},
		)
		var page api.Log
		if err == nil {
			err = json.Unmarshal(answer, &page)
		}
		if a.JSON() && answer != nil && (shown == 0 || len(page.Entries) > 0) {
			err = errors.Join(err, a.Raw(answer))
		}
		if err != nil {
			return err
		}
		if shown == 0 && page.First > max(from, 1) {
			a.Complain("the entries before %d are forgotten", page.First)
		}
		for i := range page.Entries {
			if !a.JSON() {
				showEntry(a, &page.Entries[i])
			}
		}
		shown += len(page.Entries)
		if next = page.Next; len(page.Entries) == 0 {
			break
		}
	}
	switch {
	case a.JSON():
	case shown == 0:
		a.Complain(
			"no message to %s was handled yet: `interlock task list --key %s` shows those that wait", cli.Clean(key),
			cli.Quote(cli.Clean(key)),
		)
	case shown == limit:
		a.Complain("there may be more: --limit shows it")
	}
	return nil
}

// showEntry prints an entry of a log:
//
//	41  credit {"cents":2000}, from support-2 3.0s ago
//	    done by teller-1, attempt 1, fence 17: {"balance":8000}
//	    version 43: {"cents":8000}
func showEntry(a *cli.App, e *api.LogEntry) {
	head := strings.TrimSpace(cli.Clean(e.Kind) + " " + cli.Clean(string(e.Body)))
	from := ", from " + cli.AgentName(api.Name{Agent: e.Agent}) + " " + cli.ShortMillis(e.Age) + " ago"
	number := strconv.FormatUint(e.Seq, 10)
	room := cli.TableWidth - len(number) - 2
	indent := strings.Repeat(" ", len(number)+2)
	a.Say("%s  %s%s\n", a.Tint(cli.Bold, number), cli.Cut(head, max(room-len([]rune(from)), 20)), from)

	t := view.Task{State: e.State}
	text := cli.Clean(e.State)
	if e.Fence > 0 {
		if !t.Is(interlock.TaskDone) {
			text += ", last tried"
		}
		worker := cli.AgentName(api.Name{Agent: e.Worker, Session: e.Session})
		text += " by " + worker + ", attempt " + strconv.Itoa(e.Attempt) + ", fence " + e.Fence.String()
	}
	switch {
	case len(e.Reply) > 0:
		text += ": " + cli.Clean(string(e.Reply))
	case e.Reason != "":
		text += ": " + cli.Clean(e.Reason)
	}
	a.Say("%s%s\n", indent, a.Tint(t.StateColour(), cli.Cut(text, room)))
	if d := &e.Document; e.Changed {
		text := "version " + d.Version.String() + ": "
		switch body, err := view.Body(&d.DocumentBody); {
		case d.Absent:
			text += "removed"
		case err == nil && len(body) > 0:
			text += cli.Clean(string(body))
		default:
			text += cli.Bytes(view.Size(&d.DocumentInfo)) + " of " + cli.OrDash(cli.Clean(d.ContentType))
		}
		a.Say("%s%s\n", indent, cli.Cut(text, room))
	}
}

// NewWriter returns the command writer.
func NewWriter(a *cli.App) *cobra.Command {
	return cli.Group(
		"writer", "Manage the single writers of key patterns",
		"",
		newWriterSet(a), newWriterList(a), newWriterDelete(a),
	)
}

func newWriterSet(a *cli.App) *cobra.Command {
	var queue, shape string
	cmd := &cobra.Command{
		Use:   "set PATTERN",
		Short: "Make a queue the single writer of a key pattern",
		Long: `Make the workers of --queue the single writer of the keys of the pattern PATTERN: from now
on, a document at such a key changes only when a worker acknowledges a message to it. The
queue must exist, as must the pattern, unless --shape creates it.`,
		Example: `  interlock queue set accounts
  interlock writer set account --queue accounts --shape 'account:{id}'
  interlock task work accounts -- ./account-agent`,
		Args:              cli.OneArg("a pattern"),
		ValidArgsFunction: view.CompletePatterns(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if queue == "" {
				return cli.Usagef("--queue is missing: name the queue that may write")
			}
			body := &api.WriterRequest{Queue: queue, Pattern: shape}
			r := cli.Request{Method: http.MethodPut, Path: view.WriterPath(args[0]), Body: body, ID: cli.FreshID(), Again: true}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("set: queue %s is the single writer of pattern %s\n", cli.Clean(queue), cli.Clean(args[0]))
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
			return view.CompleteQueues(a)(cmd, nil, prefix)
		},
	)
	return cmd
}

func newWriterList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the key patterns that have a queue as single writer",
		Example: "  interlock writer list",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got api.WriterList
			return a.Get(cmd.Context(), "/v1/writers", nil, &got, func() error {
				if len(got.Writers) == 0 {
					a.Complain("no queue is a single writer: `interlock writer set` makes it one")
					return nil
				}
				t := a.Table("PATTERN", "SHAPE", "QUEUE")
				for _, w := range got.Writers {
					t.Row(cli.Clean(w.Name), cli.Clean(w.Shape), cli.Clean(w.WriterQueue))
				}
				return t.Write(a.Out)
			})
		},
	}
}

func newWriterDelete(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "delete PATTERN",
		Short:             "Delete the single writer of a key pattern",
		Example:           "  interlock writer delete account",
		Args:              cli.OneArg("a pattern"),
		ValidArgsFunction: view.CompletePatterns(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := cli.Request{Method: http.MethodDelete, Path: view.WriterPath(args[0]), ID: cli.FreshID(), Again: true}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("deleted: pattern %s has no single writer any more\n", cli.Clean(args[0]))
				return nil
			})
		},
	}
}
