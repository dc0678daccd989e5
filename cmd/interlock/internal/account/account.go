package account

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/writer/account"
)

// New returns the command account.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"account", "Keep accounts that have a single writer, and their ledger",
		`Keep balances that no agent may write: agents send their commands (credit, debit, hold,
capture, void, transfer) with "interlock message ask", and the writer decides them by the
policy of a file. docs/account.md is a guide.`,
		newAccountCheck(a), newAccountSetup(a), newAccountServe(a), newAccountExport(a), newAccountVerify(a),
	)
}

// readPolicies reads a policy file.
func readPolicies(path string) (*account.File, error) {
	if path == "" {
		return nil, cli.Usagef("--policy is missing: name the file with the policies")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.Usagef("--policy: %w", err)
	}
	f, err := account.ParseFile(text)
	if err != nil {
		return nil, cli.Usagef("%s:%w", cli.Clean(path), err)
	}
	return f, nil
}

func newAccountCheck(a *cli.App) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "check --policy FILE",
		Short: "Check a policy file, and explain it",
		Long: `Check a policy file, and print what it allows. An error is reported with its line and
column: an unknown field, a duplicate field, a policy that contradicts itself. Exit code 2
means that the file is refused.`,
		Example:     `  interlock account check --policy accounts.json`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE: func(*cobra.Command, []string) error {
			f, err := readPolicies(path)
			if err != nil {
				return err
			}
			for _, line := range f.Meaning() {
				a.Say("%s\n", cli.Clean(line))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "policy", "", "the policy `file`")
	return cmd
}

// accountsSetup is how the queue and the pattern of the accounts stand on a server.
type accountsSetup struct {
	queue   api.QueueRequest
	missing bool // there is no such queue
	writer  string
	shape   string
}

func lookUpSetup(ctx context.Context, a *cli.App, f *account.File) (s accountsSetup, err error) {
	_, answer, err := a.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: view.QueuePath(f.Queue, "")})
	var queue api.QueueView
	switch {
	case cli.IsRefused(err, interlock.CodeUnknownQueue):
		s.missing = true
	case err != nil:
		return s, err
	default:
		if err := json.Unmarshal(answer, &queue); err != nil {
			return s, err
		}
		s.queue = queue.Queue.QueueRequest
	}
	writers, err := writers(ctx, a)
	for _, w := range writers {
		if w.Name == f.Pattern {
			s.writer, s.shape = w.WriterQueue, w.Shape
		}
	}
	return s, err
}

func writers(ctx context.Context, a *cli.App) ([]api.Writer, error) {
	var got api.WriterList
	_, answer, err := a.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: "/v1/writers"})
	if err == nil {
		err = json.Unmarshal(answer, &got)
	}
	return got.Writers, err
}

// lacks returns the differences from the file.
func (s *accountsSetup) lacks(f *account.File) (list []string) {
	if s.missing {
		list = append(list, "there is no queue "+f.Queue)
	}
	for _, l := range []struct {
		what       string
		have, want []string
	}{
		{"may pull from queue " + f.Queue, s.queue.Pull, f.Writers},
		{"may send to queue " + f.Queue, s.queue.Submit, f.Senders},
		{"may approve for queue " + f.Queue, s.queue.Approvers, f.Approvers},
	} {
		if !sameNames(l.have, l.want) && !s.missing {
			list = append(list, fmt.Sprintf("%s %s, the file has %s", namesOr(l.have), l.what, namesOr(l.want)))
		}
	}
	if s.queue.MinApprovals != f.MinApprovals && !s.missing {
		list = append(
			list, fmt.Sprintf("queue %s wants %d approvals, the file has %d", f.Queue, s.queue.MinApprovals, f.MinApprovals),
		)
	}
	switch {
	case s.writer == "":
		list = append(list, fmt.Sprintf("pattern %s has no single writer", f.Pattern))
	case s.writer != f.Queue:
		list = append(
			list, fmt.Sprintf("the single writer of pattern %s is queue %s, the file has %s", f.Pattern, s.writer, f.Queue),
		)
	case s.shape != f.Shape:
		list = append(list, fmt.Sprintf("pattern %s is for %s, the file has %s", f.Pattern, s.shape, f.Shape))
	}
	return list
}

func sameNames(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

func namesOr(names []string) string {
	if len(names) == 0 {
		return "everyone with a role that allows it"
	}
	return strings.Join(names, ", ")
}

func newAccountSetup(a *cli.App) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "setup --policy FILE",
		Short: "Set up the queue and the key pattern that a policy file names",
		Long: `Register the queue of the accounts' writer with the access lists of the policy file, as the
single writer of the accounts' keys. Other settings of the queue stay as they are. The
command needs an operator's credential; "account serve" needs only a worker's, and refuses
to start if the server differs from its file.`,
		Example: `  interlock account setup --policy accounts.json --credential-file ops.secret`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := readPolicies(path)
			if err != nil {
				return err
			}
			return setUpAccounts(cmd.Context(), a, f)
		},
	}
	cmd.Flags().StringVar(&path, "policy", "", "the policy `file`")
	return cmd
}

func setUpAccounts(ctx context.Context, a *cli.App, f *account.File) error {
	if err := checkWriters(a, f); err != nil {
		return err
	}
	s, err := lookUpSetup(ctx, a, f)
	if err != nil {
		return err
	}
	q := s.queue
	q.Pull, q.Submit, q.Approvers, q.MinApprovals = f.Writers, f.Senders, f.Approvers, f.MinApprovals
	set := cli.Request{
		Method: http.MethodPut, Path: view.QueuePath(f.Queue, ""), Body: &q, ID: cli.FreshID(), Again: true,
	}
	if err := a.Call(ctx, set, &struct{}{}, func() error {
		a.Say(
			"set: queue %s; %s may pull, %s may send, %s may approve\n", cli.Clean(f.Queue), cli.Clean(namesOr(f.Writers)),
			cli.Clean(namesOr(f.Senders)), cli.Clean(namesOr(f.Approvers)),
		)
		return nil
	}); err != nil {
		return err
	}
	set = cli.Request{
		Method: http.MethodPut, Path: view.WriterPath(f.Pattern), ID: cli.FreshID(), Again: true,
		Body: &api.WriterRequest{Queue: f.Queue, Pattern: f.Shape},
	}
	return a.Call(ctx, set, &struct{}{}, func() error {
		a.Say("set: queue %s is the single writer of %s\n", cli.Clean(f.Queue), cli.Clean(f.Shape))
		return nil
	})
}

// checkWriters refuses a file that lets any worker be the writer.
func checkWriters(a *cli.App, f *account.File) error {
	if a.Server.Credential != "" && len(f.Writers) == 0 {
		return cli.Usagef(
			`the policy file names no "writers": with credentials, every worker of queue %s could change the accounts; name the writer's credential, such as "writers": ["teller"]`,
			cli.Clean(f.Queue),
		)
	}
	return nil
}

func newAccountVerify(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check a ledger: its chain of hashes, and that it has no gap",
		Long: `Check a ledger that "account serve" or "account export" has written: the hash of each line,
that each continues the one before, and that no account has an unrecorded gap. If a ledger
has several files, name them in order. The command prints the number of lines and the last
hash: to prove that nothing before an earlier, recorded hash was changed, look that hash up
in the ledger.

Exit code 1 means that the ledger is wrong; the message names the line.`,
		Example: `  interlock account verify ledger.ndjson`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("name a ledger: %s", cli.UseLine(cmd))
			}
			return nil
		},
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE: func(_ *cobra.Command, args []string) error {
			l := account.NewReader()
			for _, name := range args {
				file, err := os.Open(name)
				if err != nil {
					return err
				}
				err = l.Read(file)
				file.Close()
				if err != nil {
					return fmt.Errorf("%s: %w", cli.Clean(name), err)
				}
			}
			lines, hash := l.End()
			a.Say("%d lines, no unrecorded gap, last hash %s\n", lines, hash)
			for _, gap := range l.Gaps() {
				a.Complain("%s", cli.Clean(gap))
			}
			return nil
		},
	}
}
