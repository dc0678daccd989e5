package pattern

import (
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newPatternRevisions(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "revisions NAME",
		Short: "Show the earlier revisions of a key pattern",
		Long: `Show the earlier revisions of a key pattern, the newest first. The last 16 changes are
remembered, also those of a pattern that was deleted.`,
		Example:           "  interlock pattern revisions runs",
		Args:              cli.OneArg("a pattern"),
		ValidArgsFunction: view.CompletePatterns(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got api.Revisions
			return a.Get(cmd.Context(), patternPath(args[0])+"/revisions", nil, &got, func() error {
				t := a.Table("REVISION", "AGE", "BY", "SHAPE", "POLICY")
				for i := range got.Revisions {
					r := &got.Revisions[i]
					shape, policy := "-", "deleted"
					if p := r.Pattern; p != nil && !r.Dropped {
						shape, policy = cli.Clean(p.Shape), cli.OrDash(view.PatternLine(&p.PatternRequest))
					}
					if r.Reverted > 0 {
						policy += " (as in " + strconv.Itoa(r.Reverted) + ")"
					}
					t.Row(
						r.Revision, cli.ShortMillis(r.Age), cli.OrDash(cli.Clean(r.Actor)), shape, policy,
					)
				}
				return t.Write(a.Out)
			})
		},
	}
}

func newPatternRevert(a *cli.App) *cobra.Command {
	var to uint64
	body := &api.RevertRequest{}
	cmd := &cobra.Command{
		Use:   "revert NAME",
		Short: "Restore an earlier revision of a key pattern",
		Long: `Restore an earlier revision of a key pattern, or a deleted pattern; without --to the
revision before the present one. The result is a revision of its own, so a second revert
undoes the first. Leases stay held, also above a smaller capacity.`,
		Example: `  interlock pattern revert runs
  interlock pattern revert runs --to 3`,
		Args:              cli.OneArg("a pattern"),
		ValidArgsFunction: view.CompletePatterns(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("to") {
				if body.Revision = to; to == 0 {
					return cli.Usagef("--to 0: revisions are numbered from 1")
				}
			}
			r := cli.Request{
				Method: http.MethodPost, Path: patternPath(args[0]) + "/revert", Body: body, ID: cli.FreshID(), Again: true,
			}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("reverted: pattern %s\n", cli.Clean(args[0]))
				return nil
			})
		},
	}
	cmd.Flags().Uint64Var(&to, "to", 0, "the `revision`, as interlock pattern revisions numbers them")
	cli.ReasonVar(cmd.Flags(), &body.Reason)
	return cmd
}
