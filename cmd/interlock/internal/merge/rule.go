package merge

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/merger"
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

// demands is the flags about how submissions are treated.
type demands struct {
	leases        []string
	resolver      string
	resolveWithin time.Duration
}

func (d *demands) define(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(
		&d.leases, "lease-paths", nil,
		"`PATHS=KEY`: a submission that touches PATHS, such as migrations/**, holds KEY while it is in line; may be repeated",
	)
	cmd.Flags().StringVar(
		&d.resolver, "resolver", "", "the `queue` of agents that resolve conflicts before they are returned to their authors",
	)
	cli.DurationVar(cmd.Flags(), &d.resolveWithin, "resolve-within", 15*time.Minute, "how long a resolver may take")
}

func (d *demands) parse() (list []merger.LeaseRule, err error) {
	for _, text := range d.leases {
		r, err := merger.ParseLeaseRule(text)
		if err != nil {
			return nil, cli.Usagef("--lease-paths: %w", err)
		}
		list = append(list, r)
	}
	return list, nil
}

// setUp registers the resolver's queue, and asks the server whether the keys can be keys.
func (d *demands) setUp(ctx context.Context, c *client.Client, list []merger.LeaseRule) error {
	if d.resolver != "" {
		if err := merger.SetupResolver(ctx, c, d.resolver); err != nil {
			return err
		}
	}
	for _, r := range list {
		if _, err := c.Document(ctx, r.Key); err != nil {
			return fmt.Errorf("--lease-paths %s: %w", r.Key, err)
		}
	}
	return nil
}
