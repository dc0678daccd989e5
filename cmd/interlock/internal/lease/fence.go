package lease

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/guard/signed"
	"github.com/interlockdev/interlock/internal/api"
)

// NewFence returns the command fence.
func NewFence(a *cli.App) *cobra.Command {
	return cli.Group(
		"fence", "Sign and verify fences",
		`A signed fence is a short-lived statement that a lease holds a key. The guard of a resource
verifies it with the server's public keys alone, without a call to the server.`,
		newFenceSign(a), newFenceVerify(a), newFenceKeys(a), newFenceRotate(a),
	)
}

func newFenceSign(a *cli.App) *cobra.Command {
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "sign [LEASE]",
		Short: "Print a signed statement of a lease's fence",
		Long: `Print a signed statement of a lease's fence; without LEASE it is the lease in
$INTERLOCK_LEASE. Send the statement along with a write. It is valid for --ttl, and never
longer than the lease.`,
		Example: `  curl -X PUT -H "Interlock-Statement: $(interlock fence sign)" https://api.example.com/accounts/12345`,
		Args:    cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseArg(args)
			if err != nil {
				return err
			}
			if err := cli.CheckDurations(cli.Duration("--ttl", ttl, time.Millisecond, signed.MaxTTL)); err != nil {
				return err
			}
			var got api.Statement
			r := cli.Request{
				Method: http.MethodPost, Path: view.LeasePath(id, "statement"),
				Body:  &api.StatementRequest{TTL: ttl.Milliseconds()},
				Again: true,
			}
			return a.Call(cmd.Context(), r, &got, func() error {
				a.Say("%s\n", cli.Clean(got.Statement))
				return nil
			})
		},
	}
	cli.DurationVar(cmd.Flags(), &ttl, "ttl", signed.DefaultTTL, "how long the statement is valid")
	return cmd
}

func newFenceVerify(a *cli.App) *cobra.Command {
	var keys string
	var least uint64
	cmd := &cobra.Command{
		Use:   "verify KEY [STATEMENT]",
		Short: "Verify that a statement lets its bearer write a key",
		Long: `Verify that a statement lets its bearer write KEY, in the namespace that --namespace names.
Without STATEMENT it is read from standard input. With --keys no server is needed; without,
the public keys are fetched from the server.

A statement proves that the lease was live when it was signed. Remember the highest fence of
each key and pass it with --min-fence: that refuses holders that have lost the key since.

Exit codes: 0 it may write, 65 its fence is too low, 77 the statement is invalid or for
something else, 69 no server answered.`,
		Example: `  interlock fence keys > keys.json
  interlock fence verify account:12345 "$STATEMENT" --keys keys.json --min-fence 17`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return cli.Usagef("too many arguments: %s", cli.UseLine(cmd))
			}
			return cli.OneArg("a key")(cmd, args[:min(1, len(args))])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := statement(a, args[1:])
			if err != nil {
				return err
			}
			set, err := keySet(cmd.Context(), a, keys)
			if err != nil {
				return err
			}
			want := signed.Want{
				Namespace: interlock.Namespace(a.Server.Namespace), Key: interlock.Key(args[0]), Fence: interlock.Fence(least),
			}
			if want.Namespace == "" {
				want.Namespace = interlock.DefaultNamespace
			}
			now := time.Now()
			s, err := set.Verify(text, now, want)
			if err != nil {
				return err
			}
			return tellStatement(a, want.Key, s, now)
		},
	}
	cmd.Flags().StringVar(
		&keys, "keys", "", "`file` with the key set, as interlock fence keys prints it (default: the server is asked)",
	)
	cmd.Flags().Uint64Var(&least, "min-fence", 0, "the highest `fence` that was seen of the key; a lower one is refused")
	return cmd
}

// statement is the one on the command line, or on standard input.
func statement(a *cli.App, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	b, err := io.ReadAll(io.LimitReader(a.In, signed.MaxBytes+2))
	if err != nil {
		return "", fmt.Errorf("the statement cannot be read: %w", err)
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return "", cli.Usagef("there is no statement: pass it after the key, or on standard input")
	}
	return text, nil
}

// keySet is the one in a file, or the server's.
func keySet(ctx context.Context, a *cli.App, path string) (signed.KeySet, error) {
	var content []byte
	var err error
	if path != "" {
		content, err = os.ReadFile(path)
	} else {
		_, content, err = a.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: "/v1/fences/keys"})
	}
	if err != nil {
		return nil, err
	}
	return signed.ParseKeySet(content)
}

func tellStatement(a *cli.App, key interlock.Key, s *signed.Statement, now time.Time) error {
	left := s.Expires.Sub(now)
	if a.JSON() {
		return a.Print(struct {
			Outcome   string              `json:"outcome"`
			Key       interlock.Key       `json:"key"`
			Namespace interlock.Namespace `json:"namespace"`
			Fence     interlock.Fence     `json:"fence,string"`
			Holder    signed.Holder       `json:"holder"`
			ExpiresIn int64               `json:"expires_in_ms"`
		}{"valid", key, s.Namespace, s.Fence, s.Holder, left.Milliseconds()})
	}
	a.Say(
		"valid: %s may write %s under fence %s, for %s\n",
		cli.AgentName(api.Name{Agent: s.Holder.Agent, Session: s.Holder.Session}), cli.Clean(string(key)), s.Fence,
		cli.Short(left),
	)
	return nil
}

func newFenceKeys(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "keys",
		Short: "Print the public keys that verify statements",
		Long: `Print the public keys that verify statements, as a JSON Web Key Set. Keys are rotated:
when a statement names one that is not in the set, get the set anew.`,
		Example:     `  interlock fence keys > keys.json`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.TextOnly: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, answer, err := a.API().Do(cmd.Context(), cli.Request{Method: http.MethodGet, Path: "/v1/fences/keys"})
			if err != nil {
				return err
			}
			return a.Raw(answer)
		},
	}
}

func newFenceRotate(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Sign with a new key from now on",
		Long: `Sign with a new key from now on. The former key stays in the key set until the last
statement that it signed has expired. All namespaces share the keys, so the command needs a
credential with the role server.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got api.Rotated
			r := cli.Request{Method: http.MethodPost, Path: "/v1/fences/keys/rotate", Body: struct{}{}}
			return a.Call(cmd.Context(), r, &got, func() error {
				a.Say("rotated: %s signs from now on\n", cli.Clean(got.KeyID))
				return nil
			})
		},
	}
}
