package merge

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/merge"
)

// rules is the flags that change what a landing is: they are part of the profile.
type rules struct{ renumber []string }

func (r *rules) define(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(
		&r.renumber, "renumber", nil,
		"`SEQUENCE=COMMAND`: give new files free numbers, such as migrations/{n:4}_{name}.sql; may be repeated",
	)
}

// profile is that of this machine with the rules.
func (r *rules) profile(ctx context.Context) (merge.Profile, error) {
	p, err := merge.NewProfile(ctx, "")
	if err != nil {
		return p, err
	}
	for _, text := range r.renumber {
		rule, err := merge.ReadRenumber(text)
		if err != nil {
			return p, cli.Usagef("--renumber: %w", err)
		}
		p.Renumbers = append(p.Renumbers, rule)
	}
	return p, nil
}
