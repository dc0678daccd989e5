package client

import (
	"context"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// SetPattern registers a key pattern, or replaces the one with its name. Leases
// keep the times that they were given; capacity and rate count at once.
func (c *Client) SetPattern(ctx context.Context, p interlock.Pattern) error {
	p = clonePattern(p)
	k := c.newCall(proto.OpSetPattern)
	k.op.Pattern = &p
	_, err := c.do(ctx, k, "the registration of pattern "+p.Name)
	return err
}

// DropPattern forgets a key pattern.
func (c *Client) DropPattern(ctx context.Context, name string) error {
	k := c.newCall(proto.OpDropPattern)
	k.op.Name = name
	_, err := c.do(ctx, k, "the removal of pattern "+name)
	return err
}

// RevertPattern restores an earlier revision of a key pattern, also of a deleted one; revision 0
// is the revision before the present one.
func (c *Client) RevertPattern(ctx context.Context, name string, revision uint64) error {
	k := c.newCall(proto.OpRevertPattern)
	k.op.Name, k.op.Revision = name, revision
	_, err := c.do(ctx, k, "the revision of pattern "+name)
	return err
}

// Patterns lists the namespace's key patterns by their names.
func (c *Client) Patterns(ctx context.Context) (list []interlock.Pattern, err error) {
	for after := ""; ; {
		k := c.newCall(proto.OpListPatterns)
		k.op.Name = after
		found, err := c.do(ctx, k, "the list of patterns")
		if err != nil {
			return nil, err
		}
		for _, p := range found.Patterns {
			list = append(list, clonePattern(p))
		}
		if !found.More || len(found.Patterns) == 0 {
			return list, nil
		}
		after = list[len(list)-1].Name
	}
}

// Configure replaces the namespace's settings.
func (c *Client) Configure(ctx context.Context, s interlock.Settings) error {
	k := c.newCall(proto.OpConfigure)
	k.op.Settings = &s
	_, err := c.do(ctx, k, "the change of the settings")
	return err
}

// Settings returns the namespace's settings.
func (c *Client) Settings(ctx context.Context) (interlock.Settings, error) {
	found, err := c.do(ctx, c.newCall(proto.OpGetSettings), "the settings")
	if err != nil || found.Settings == nil {
		return interlock.Settings{}, err
	}
	return *found.Settings, nil
}

// clonePattern returns a pattern that shares no memory: within one process, the other side gets
// the sent value itself.
func clonePattern(p interlock.Pattern) interlock.Pattern {
	p.Aliases, p.Members, p.Groups = slices.Clone(p.Aliases), slices.Clone(p.Members), slices.Clone(p.Groups)
	p.Allow = slices.Clone(p.Allow)
	for i := range p.Allow {
		p.Allow[i].Modes = slices.Clone(p.Allow[i].Modes)
	}
	return p
}
