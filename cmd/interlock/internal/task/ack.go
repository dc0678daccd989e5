package task

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// ackFlags is the flags of an acknowledgement.
type ackFlags struct {
	lease string
	reads []string
	asOf  string
	puts  []string
	merge []string
	rms   []string
	file  string
	note  string
}

func newTaskAck(a *cli.App) *cobra.Command {
	var k ackFlags
	cmd := &cobra.Command{
		Use:   "ack [RESULT]",
		Short: "Acknowledge a task, with its result and its writes",
		Long: `Acknowledge the task under the lease in $INTERLOCK_LEASE as done. RESULT is JSON, or text,
or @FILE, or - for standard input; for a message it is the reply. The writes and follow-up
tasks take effect with it, all or nothing: if a document has changed since it was read,
nothing is written, the answer describes the changes, and the attempt continues.

--file reads the whole acknowledgement, an object as POST /v1/leases/{id}/ack takes it:

  {"result": {"balance": 80}, "reads": [{"key": "account:1", "version": "41"}],
   "writes": [{"key": "account:1", "put": {"balance": 80}}],
   "tasks": [{"queue": "mail", "payload": {"letter": 3}}],
   "messages": [{"key": "ledger:2026", "kind": "book", "body": {"cents": -2000}}]}

Exit codes: 0 done, 65 stale: decide again, 79 the attempt is over: drop your results, 69 no
server answered, 77 not allowed, 2 wrong flags.`,
		Example: `  interlock task ack '{"charged": 3500}'
  interlock task ack "sent" --read account:12345=41 --put account:12345='{"balance": 80}' --note "late fee"
  jq '{result: .total, writes: .changes}' < decided.json | interlock task ack --file -`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseFlag(k.lease)
			if err != nil {
				return err
			}
			body, err := k.body(a, args)
			if err != nil {
				return err
			}
			return ack(cmd.Context(), a, id, body)
		},
	}
	f := cmd.Flags()
	leaseOf(f, &k.lease)
	f.StringArrayVar(
		&k.reads, "read", nil, "a document that the decision depends on, `KEY=VERSION`, KEY=0 for none; may be repeated",
	)
	f.StringVar(&k.asOf, "as-of", "", "write only if none of the keys was written after this `version` of the namespace")
	f.StringArrayVar(&k.puts, "put", nil, "write a document, `KEY=JSON`; may be repeated")
	f.StringArrayVar(&k.merge, "merge", nil, "change members of a document, `KEY=PATCH`; may be repeated")
	f.StringArrayVar(&k.rms, "rm", nil, "remove the document at a `key`; may be repeated")
	f.StringVar(&k.file, "file", "", "read the acknowledgement from this `file` of JSON; - is standard input")
	f.StringVar(&k.note, "note", "", "a `text` for the next holders of the keys")
	return cmd
}

// leaseOf adds --lease.
func leaseOf(f *pflag.FlagSet, id *string) {
	f.StringVar(id, "lease", "", "the `lease` of the attempt (default: $INTERLOCK_LEASE)")
}

// body is the acknowledgement in the form of the HTTP API.
func (k *ackFlags) body(a *cli.App, args []string) (map[string]any, error) {
	body := map[string]any{}
	if k.file != "" {
		content, err := cli.ReadAll(a.In, k.file)
		if err != nil {
			return nil, err
		}
		if err := cli.DecodeNumbers(content, &body); err != nil {
			return nil, cli.Usagef("%s cannot be read as JSON: %w", cli.Clean(k.file), err)
		}
	}
	if len(args) == 1 {
		result, err := resultArg(a, args[0])
		if err != nil {
			return nil, err
		}
		body["result"] = result
	}
	reads, err := readsOf(k.reads)
	if err != nil {
		return nil, err
	}
	var writes []api.WriteRequest
	for _, write := range []struct {
		flag string
		list []string
		of   func(*api.WriteRequest) *json.RawMessage
	}{
		{"put", k.puts, func(w *api.WriteRequest) *json.RawMessage { return &w.Put }},
		{"merge", k.merge, func(w *api.WriteRequest) *json.RawMessage { return &w.Merge }},
	} {
		for _, text := range write.list {
			key, value, ok := strings.Cut(text, "=")
			if !ok || !json.Valid([]byte(value)) {
				return nil, cli.Usagef(
					"--%s %s: want KEY=JSON, such as account:1='{\"balance\": 80}'", write.flag, cli.Cut(cli.Clean(text), 40),
				)
			}
			w := api.WriteRequest{Key: interlock.Key(key)}
			*write.of(&w) = json.RawMessage(value)
			writes = append(writes, w)
		}
	}
	for _, key := range k.rms {
		writes = append(writes, api.WriteRequest{Key: interlock.Key(key), Delete: true})
	}
	extend(body, "reads", reads)
	extend(body, "writes", writes)
	for field, text := range map[string]string{"as_of": k.asOf, "note": k.note} {
		if text != "" {
			body[field] = text
		}
	}
	return body, nil
}

// extend appends a list to a member of an object.
func extend[T any](body map[string]any, field string, list []T) {
	all, ok := body[field].([]any)
	for _, item := range list {
		all = append(all, item)
	}
	if ok || len(list) > 0 {
		body[field] = all
	}
}

// resultArg is a result: JSON, or text, or @FILE or - with either.
func resultArg(a *cli.App, text string) (any, error) {
	file := ""
	switch {
	case text == "-":
		file = "-"
	case strings.HasPrefix(text, "@"):
		file = text[1:]
	default:
		return cli.ResultOf(text), nil
	}
	content, err := cli.ReadAll(a.In, file)
	return cli.ResultOf(strings.TrimRight(string(content), "\n")), err
}

// ack acknowledges the attempt under a lease. If it is refused because something has changed, the
// output tells how, in words that are ready for a prompt.
func ack(ctx context.Context, a *cli.App, lease string, body map[string]any) error {
	_, answer, err := a.API().Insist(ctx, acknowledgement(lease, body), false)
	if shown, err := a.RawAnswer(answer, err); shown {
		return err
	}
	if err != nil {
		return view.Stale(a, answer, err)
	}
	var got api.Acknowledged
	if err := cli.Decode(answer, &got); err != nil {
		return err
	}
	a.Say("done\n")
	for i := range got.Documents {
		a.Complain("%s is at version %s", cli.Clean(string(got.Documents[i].Key)), got.Documents[i].Version)
	}
	a.Warn(got.Warnings)
	return nil
}

func acknowledgement(lease string, body any) cli.Request {
	return cli.Request{
		Method: http.MethodPost, Path: view.LeasePath(lease, "ack"), Body: body, ID: cli.FreshID(), Again: true,
	}
}

func newTaskNack(a *cli.App) *cobra.Command {
	var lease string
	var in time.Duration
	var dead bool
	cmd := &cobra.Command{
		Use:   "nack [REASON]",
		Short: "Report that an attempt at a task has failed",
		Long: `Report that the attempt under the lease in $INTERLOCK_LEASE has failed, and why. The task is
tried again after a pause that grows from attempt to attempt, or after --in; after the last
attempt, or with --dead, it is a dead letter.`,
		Example: `  interlock task nack "the account is locked elsewhere" --in 60s
  interlock task nack "there is no such customer" --dead`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseFlag(lease)
			if err != nil {
				return err
			}
			given := cmd.Flags().Changed("in")
			if dead && given {
				return cli.Usagef("--dead and --in: a dead task has no other attempt")
			}
			if err := cli.CheckDurations(cli.Duration("--in", in, 0, interlock.MaxDelay)); err != nil {
				return err
			}
			body := &api.NackRequest{Dead: dead}
			if len(args) == 1 {
				body.Reason = args[0]
			}
			if given {
				body.Delay = new(in.Milliseconds())
			}
			return settleAttempt(cmd.Context(), a, id, "nack", body)
		},
	}
	f := cmd.Flags()
	leaseOf(f, &lease)
	cli.DurationVar(f, &in, "in", 0, "after which time it is tried again, such as 60s, or 0 (default: by the task's backoff)")
	f.BoolVar(&dead, "dead", false, "no other attempt can help")
	return cmd
}

func newTaskAsk(a *cli.App) *cobra.Command {
	var lease string
	var q questionFlags
	cmd := &cobra.Command{
		Use:   "ask QUESTION",
		Short: "Ask a person before a task continues",
		Long: `Suspend the attempt under the lease in $INTERLOCK_LEASE until a person has answered
QUESTION. The task holds neither keys nor a worker meanwhile; the attempt does not count.
After a yes the task is handed out again, in its old place, with the answer and with the
changes since it was read; after a no the task is dead.`,
		Example: `  interlock task ask "refund 1200.00 to customer 12?" --for 8h --read account:12345=41`,
		Args:    cli.OneArg("the question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseFlag(lease)
			if err != nil {
				return err
			}
			body, err := q.question(args[0])
			if err != nil {
				return err
			}
			return settleAttempt(cmd.Context(), a, id, "ask", body)
		},
	}
	leaseOf(cmd.Flags(), &lease)
	q.flags(cmd, "")
	return cmd
}

// settleAttempt ends an attempt without a result, and prints the task's state then.
func settleAttempt(ctx context.Context, a *cli.App, lease, how string, body any) error {
	var got api.TaskAnswer
	r := cli.Request{Method: http.MethodPost, Path: view.LeasePath(lease, how), Body: body, ID: cli.FreshID(), Again: true}
	return a.Call(ctx, r, &got, func() error {
		t := view.TaskOf(&got.Task)
		a.Say("%s\n", t.Stands())
		a.Warn(got.Warnings)
		if next := t.Next(); next != "" {
			a.Complain("%s", next)
		}
		return nil
	})
}
