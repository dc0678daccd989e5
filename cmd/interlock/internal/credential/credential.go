package credential

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/server"
)

// New returns the command credential.
func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "credential",
		Short:       "Make, list and revoke the credentials of a server",
		Args:        cli.NoCommand,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCredentialNew(a), newList(a), newDelete(a))
	return cmd
}

func newCredentialNew(a *cli.App) *cobra.Command {
	var space, file string
	var operator bool
	var roles, queues, groups []string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a credential and its line for the credentials file",
		Long: `Make a credential of 256 random bits. It is printed once and stored nowhere: pass it to its
owner, who sets INTERLOCK_CREDENTIAL or keeps it in a file. The server gets a line with its
hash; --file appends that line to the server's credentials file, which a running server reads
again within 10 s, or at once on SIGHUP.

Roles define its rights: viewer reads; agent holds leases, commits and submits tasks; worker
pulls from the queues named by --queue; approver answers questions; operator administers
patterns, settings and queues, and revokes leases; server rotates the keys that sign fences,
which all namespaces share; metrics reads /metrics with the names of all namespaces, and
nothing else; merger runs merge queues: no other role writes their keys; checker runs the
checks of merge queues, and reports verdicts. Without a role it is an agent's. docs/security.md
has the table of rights.`,
		Example: `  interlock credential create billing-swarm --for acme --file credentials.txt
  interlock credential create ops --for acme --role operator --file credentials.txt
  interlock credential create bank --for acme --role agent --queue bank --file credentials.txt
  interlock credential create prometheus --role metrics --file credentials.txt
  interlock credential create merger --role merger --role operator --file credentials.txt`,
		Args: cli.OneArg("the credential"),
		Annotations: map[string]string{
			cli.Offline: "true",
		},
		RunE: func(_ *cobra.Command, args []string) error {
			principal := interlock.Principal{Name: args[0], Queues: queues, Groups: groups}
			if operator {
				roles = append(roles, "operator")
			}
			if len(queues) > 0 {
				roles = append(roles, "worker")
			}
			for _, name := range roles {
				role, ok := interlock.ParseRole(name)
				switch {
				case !ok:
					return cli.ExitWith(cli.ExitUsage, fmt.Errorf("there is no role %q: want one of %s", name, interlock.AllRoles))
				case role == interlock.RoleWorker && len(queues) == 0:
					return cli.ExitWith(cli.ExitUsage, errors.New("name the worker's queues with --queue, or --queue '*' for all"))
				}
				principal.Roles |= role
			}
			secret, line, err := server.NewCredential(principal, interlock.Namespace(space))
			if err != nil {
				return cli.ExitWith(cli.ExitUsage, err)
			}
			if file != "" {
				if err := appendLine(file, line); err != nil {
					return err
				}
			}
			if a.JSON() {
				return a.Print(struct {
					Name       string `json:"name"`
					Namespace  string `json:"namespace"`
					Credential string `json:"credential"`
					Line       string `json:"line"`
					File       string `json:"file,omitempty"`
				}{args[0], space, secret, line, file})
			}
			a.Say("%s\n", secret)
			if file != "" {
				a.Complain("its line was added to %s; a running server reads it within 10 s, or at once on SIGHUP", file)
				return nil
			}
			a.Complain("add this line to the file that serve --credentials names:")
			fmt.Fprintln(a.Err, line)
			return nil
		},
	}
	cmd.Flags().StringVar(&space, "for", string(interlock.DefaultNamespace), "the `namespace` that it is for")
	cmd.Flags().StringSliceVar(
		&roles, "role", nil,
		"a `role`: viewer, agent, worker, approver, operator, server, metrics, merger or checker; may be repeated "+
			"(default agent)",
	)
	cmd.Flags().StringSliceVar(&queues, "queue", nil, "a `queue` that it may work for, '*' for all; may be repeated")
	cmd.Flags().StringSliceVar(&groups, "group", nil, "a claimant `group` that it acts for; may be repeated")
	cmd.Flags().BoolVar(&operator, "operator", false, "short for --role operator")
	cmd.Flags().StringVar(&file, "file", "", "append its line to this `file`, which is made when it is missing")
	return cmd
}

// appendLine adds a line to a file that only its owner may read.
func appendLine(file, line string) (err error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// The last line may lack its end.
	if n := info.Size(); n > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], n-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		return err
	}
	return f.Sync()
}
