package journal

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

const shardsPath = "/v1/shards"

func newShards(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shards",
		Short: "List the shards of the journal with their owners",
		Long: `List the shards of the journal with the servers that own them. A shard without an owner is
taken within seconds. This needs the role server.`,
		Example: `  interlock admin shards
  interlock admin shards -o json | jq '[.shards[] | select(.server == null)] | length'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list api.ShardList
			return a.Get(cmd.Context(), shardsPath, nil, &list, func() error {
				owners := map[string]string{}
				for _, s := range list.Servers {
					owners[s.ID] = cli.Clean(s.HTTP)
				}
				t := a.Table("SHARD", "STORE", "OWNER")
				for _, s := range list.Shards {
					owner := cmp.Or(owners[s.Server], cli.Clean(s.Server))
					if owner == "" && s.Here {
						owner = "this server"
					}
					t.Row(s.Shard, cmp.Or(cli.Clean(s.Store), "journal"), cmp.Or(owner, "none"))
				}
				if err := t.Write(a.Out); err != nil || len(list.Moves) == 0 {
					return err
				}
				a.Say("\n")
				t = a.Table("MOVE", "NAMESPACE", "FROM", "TO", "STEP")
				for _, m := range list.Moves {
					t.Row(m.Number, cli.Clean(m.Namespace), m.From, m.To, m.Step)
				}
				return t.Write(a.Out)
			})
		},
	}
	cmd.AddCommand(newAddShards(a))
	return cmd
}

func newAddShards(a *cli.App) *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use:   "add STORE --count N",
		Short: "Add shards in another engine",
		Long: `Add shards in another engine, for namespaces that are moved there: a journal's own shards, over
which hashes spread namespaces, stay as they are. STORE is its name in serve --store, with
which all servers must have been started. This needs the role server.`,
		Example: `  interlock admin shards add fast --count 4
  interlock admin move acme --to 16`,
		Args: cli.OneArg("the store"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := cli.Request{
				Method: http.MethodPost, Path: shardsPath, Body: api.AddShardsRequest{Store: args[0], Shards: count},
			}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("added: see interlock admin shards\n")
				return nil
			})
		},
	}
	cmd.Flags().IntVar(&count, "count", 1, "the `number` of new shards")
	return cmd
}

func newMembers(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "members",
		Short: "List the servers over the journal",
		Long: `List the servers over a journal in an engine, with the number of shards that each one owns.
A server that dies stays in the list for the time of serve --standby-after, or until it refuses
connections. STATE also shows if the answering server, or others, cannot reach a server: one
that most do not reach leaves its shards to them. A server without a sign of life has not
written to the journal's engine; all have none if the engine does not answer. This needs the
role server.`,
		Example: `  interlock admin members`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list api.ShardList
			return a.Get(cmd.Context(), shardsPath, nil, &list, func() error {
				if len(list.Servers) == 0 {
					a.Say("one server, with its journal in a directory\n")
					return nil
				}
				t := a.Table("SERVER", "STREAMS", "VERSION", "WEIGHT", "SHARDS", "STATE")
				for _, s := range list.Servers {
					state := "active"
					switch {
					case s.UnreachedFor > 0 || s.UnreachedBy > 0:
						silent := time.Duration(s.UnreachedFor) * time.Millisecond
						state = fmt.Sprintf("unreachable from here for %v", silent.Round(time.Second))
						if s.UnreachedFor == 0 {
							state = "reachable from here"
						}
						if s.UnreachedBy > 0 {
							state += fmt.Sprintf(", %d servers do not reach it", s.UnreachedBy)
						}
					case s.SilentFor > 0:
						state = fmt.Sprintf("no sign of life for %v", (time.Duration(s.SilentFor) * time.Millisecond).Round(time.Second))
					case s.Draining:
						state = "draining"
					case s.Shards == 0:
						state = "standby"
					}
					t.Row(cli.Clean(s.HTTP), cli.Clean(s.GRPC), cli.Clean(s.Version), s.Weight, s.Shards, state)
				}
				return t.Write(a.Out)
			})
		},
	}
}
