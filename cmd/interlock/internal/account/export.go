package account

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/writer/account"
)

// exportAccounts is the flags of account export.
type exportAccounts struct {
	queue, out, since string
	after             []string
	follow, gaps      bool
}

func newAccountExport(a *cli.App) *cobra.Command {
	var x exportAccounts
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the ledger of all accounts, and follow it",
		Long: `Write the decisions on all accounts as lines of JSON: account, time, kind, outcome, from and
to, amount, balance after it, requester, approver, and for a refusal its code and reason.
Each line has the hash of the one before. The accounts are those whose single writer is the
queue of --queue.

With --out the lines go to a file, which is synced. An existing file is continued: a torn
last line is cut off, and each account continues after its last line, so a kill neither
loses nor repeats anything. With --follow the command continues with new decisions, also
across restarts of the server, until it is interrupted.

The server keeps the last 1,024 entries of an account, and 64 MiB of all. When entries are
forgotten that the ledger does not have, the command names them and ends with exit code 1,
never with a silent gap; --accept-gaps records the gap in the next line instead. With
"account serve --ledger" nothing is forgotten.`,
		Example: `  interlock account export | jq -c '[.at, .from, .to, .amount, .balance]'
  interlock account export --follow --out ledger.ndjson
  interlock account export --since 24h
  interlock account export --follow --out 2027.ndjson --after 2026.ndjson`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return x.run(cmd.Context(), a) },
	}
	f := cmd.Flags()
	f.StringVar(&x.queue, "queue", account.DefaultQueue, "the `queue` that is the accounts' single writer")
	f.StringVar(&x.out, "out", "", "append to this `file` instead of standard output, after what it has")
	f.StringArrayVar(&x.after, "after", nil, "the ledger continues that of this `file`; may be repeated, oldest first")
	f.StringVar(&x.since, "since", "", "leave out decisions before a `time`, such as 2026-11-01T00:00:00Z, or 24h ago")
	f.BoolVarP(&x.follow, "follow", "f", false, "follow new events")
	f.BoolVar(
		&x.gaps, "accept-gaps", false, "continue where the server has forgotten entries, and record the gap in the ledger",
	)
	return cmd
}

func (x *exportAccounts) run(ctx context.Context, a *cli.App) error {
	since, err := sinceWhen(x.since)
	if err != nil {
		return err
	}
	if len(x.after) > 0 && x.out == "" {
		return cli.Usagef("--after is for a ledger in a file: name it with --out")
	}
	l := account.NewLedger(contentWriter{a})
	if x.out != "" {
		var file *os.File
		if l, file, err = openLedger("--out", x.out, x.after); err != nil {
			return err
		}
		defer file.Close()
	}
	l.Since = since
	wire(a, l, x.gaps)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	k, err := keepLedger(ctx, a, x.queue, l)
	if err == nil && x.follow {
		err = k.follow(ctx, nil)
	} else if err == nil {
		err = k.sweep(ctx)
	}
	if ctx.Err() != nil && x.follow {
		return nil // interrupted, as asked
	}
	if l.Err() != nil {
		return ledgerError(l.Err())
	}
	return err
}

// sinceWhen reads a time, or how long ago it was.
func sinceWhen(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return time.Now().Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, cli.Usagef(
			"--since %s: want a time such as 2026-11-01T00:00:00Z, or a duration such as 24h", cli.Clean(text),
		)
	}
	return at, nil
}

// contentWriter writes texts of others, harmless on a terminal.
type contentWriter struct{ a *cli.App }

func (w contentWriter) Write(b []byte) (int, error) { return len(b), w.a.Content(b) }
