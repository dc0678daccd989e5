package journal

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

const (
	movesPath = "/v1/moves"
	drainPath = "/v1/servers/drain"
)

// lookEvery is how often the end of a move is looked for.
const lookEvery = 200 * time.Millisecond

func newMove(a *cli.App) *cobra.Command {
	var to int
	var back uint64
	var detach bool
	cmd := &cobra.Command{
		Use:   "move NAMESPACE --to SHARD | --take-back MOVE",
		Short: "Move a namespace to another shard",
		Long: `Move a namespace to another shard, for example away from a busy one. The command waits until the
other shard answers; if it is interrupted, the move goes on. In between, usually for a
second, the namespace answers nothing, and clients repeat their requests. Leases do not end
meanwhile. --take-back ends a move before its target answers. This needs the role
server.`,
		Example: `  interlock admin shards
  interlock admin move acme --to 7
  interlock admin move --take-back 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			takes := cmd.Flags().Changed("take-back")
			switch {
			case takes && (len(args) > 0 || cmd.Flags().Changed("to")):
				return cli.Usagef("--take-back names the move, and nothing else is given: %s", cli.UseLine(cmd))
			case takes:
				path := movesPath + "/" + strconv.FormatUint(back, 10)
				r := cli.Request{Method: http.MethodDelete, Path: path, Again: true}
				return a.Call(cmd.Context(), r, &struct{}{}, func() error {
					a.Say("move %d was taken back\n", back)
					return nil
				})
			case len(args) != 1 || !cmd.Flags().Changed("to"):
				return cli.Usagef("name the namespace and its new shard: %s", cli.UseLine(cmd))
			}
			return move(cmd.Context(), a, args[0], to, detach)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&to, "to", 0, "the number of the `SHARD`")
	f.Uint64Var(&back, "take-back", 0, "end the `MOVE` with this number: the namespace stays where it is")
	f.BoolVar(&detach, "detach", false, "return as soon as the move has begun")
	return cmd
}

// move begins a move, and waits until the target answers unless detach is set. The same call repeated answers how
// far the move is.
func move(ctx context.Context, a *cli.App, namespace string, to int, detach bool) error {
	r := cli.Request{
		Method: http.MethodPost, Path: movesPath, Body: api.MoveRequest{Namespace: namespace, Shard: to}, Again: true,
	}
	for {
		_, text, err := a.API().Insist(ctx, r, false)
		var answer api.MoveAnswer
		if err == nil {
			err = cli.Decode(text, &answer)
		}
		m := answer.Move
		moves := err == nil && m != nil && m.Step != "arrived"
		if moves && !detach {
			select {
			case <-time.After(lookEvery):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if shown, err := a.RawAnswer(text, err); shown {
			return err
		}
		switch {
		case err != nil:
			return err
		case moves:
			a.Say("namespace %s moves from shard %d to %d: move %d\n", cli.Clean(m.Namespace), m.From, m.To, m.Number)
		default:
			a.Say("namespace %s is in shard %d\n", cli.Clean(namespace), to)
		}
		return nil
	}
}

func newDrain(a *cli.App) *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain SERVER",
		Short: "Move the shards of a server to others",
		Long: `Move the shards of a server to the other servers, one after the other, for example before its
machine is maintained. SERVER is its address, as interlock admin members lists it. The server
keeps running, and forwards calls. A server that is stopped leaves its shards by itself. This
needs the role server.`,
		Example: `  interlock admin drain http://10.0.0.2:7420
  interlock admin drain http://10.0.0.2:7420 --undo`,
		Args: cli.OneArg("the server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			drain := !undo
			r := cli.Request{
				Method: http.MethodPost, Path: drainPath, Again: true,
				Body: api.DrainRequest{Server: args[0], Drain: &drain},
			}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				if undo {
					a.Say("%s takes shards again\n", cli.Clean(args[0]))
					return nil
				}
				a.Say("%s leaves its shards: see interlock admin members\n", cli.Clean(args[0]))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "let it take shards again")
	return cmd
}
