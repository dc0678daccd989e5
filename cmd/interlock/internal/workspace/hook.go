package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/workspace"
)

// hookInput is the input of Claude Code's hooks WorktreeCreate and WorktreeRemove. Version 2.1.165 and
// later send name; its documentation has worktree_name and source_ref.
type hookInput struct {
	Event  string `json:"hook_event_name"`
	Dir    string `json:"cwd"`
	Name   string `json:"name"`
	Other  string `json:"worktree_name"`
	Ref    string `json:"source_ref"`
	Path   string `json:"worktree_path"`
	Agent  string `json:"agent_id"`
	Thread string `json:"session_id"`
}

func newHook(a *cli.App) *cobra.Command {
	c := &creation{a: a}
	var install, uninstall, user bool
	cmd := &cobra.Command{
		Use:   "hook claude-code",
		Short: "Make workspaces for a coding agent that asks for worktrees",
		Long: `Be the hook that Claude Code calls in place of "git worktree add" and "git worktree remove", for
claude --worktree and for sub-agents with isolation. It reads the event from standard input.
WorktreeCreate makes a workspace and prints its path, or takes the one of that name, as Claude
Code does to go on. Files of .worktreeinclude and .claude/settings.local.json are copied into it.
WorktreeRemove deletes it, and saves unsubmitted work under a ref first.

--install writes it into the settings of Claude Code, with the flags that are given:
.claude/settings.local.json of the project, or those of the user with --user. --uninstall
removes it.

Exit codes: 0 done, else Claude Code makes no worktree; those of "interlock workspace new".`,
		Example: `  interlock workspace hook claude-code --install --include .env --share node_modules
  interlock workspace hook claude-code --uninstall`,
		Args:        cli.OneArg("the coding agent"),
		Annotations: map[string]string{cli.TextOnly: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "claude-code" {
				return cli.Usagef("%s has no hooks for worktrees: want claude-code", cli.Clean(args[0]))
			}
			if install || uninstall {
				return c.install(user, uninstall)
			}
			input, err := io.ReadAll(io.LimitReader(a.In, 1<<20))
			if err != nil {
				return err
			}
			var in hookInput
			if err := json.Unmarshal(input, &in); err != nil {
				return cli.ExitWith(cli.ExitUsage, fmt.Errorf("the input is no event of Claude Code: %w", err))
			}
			if cmd.Flags().Changed("setup") {
				c.o.Setup = &c.setup
			}
			c.pass = link.Repeated(cmd.InheritedFlags())
			return c.hook(cmd.Context(), &in)
		},
	}
	c.define(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&c.o.Include, "include", nil, "a `file` or folder that git ignores, to be copied; may be repeated")
	f.StringArrayVar(&c.o.Share, "share", nil, "a `folder` that git ignores, to be a link; may be repeated")
	f.StringVar(&c.o.Target, "target", "", "the `branch` that the work is for (default: the one that is checked out)")
	c.minFreeVar(cmd)
	c.setupVar(cmd)
	f.BoolVar(&install, "install", false, "write the hooks into the settings of Claude Code")
	f.BoolVar(&uninstall, "uninstall", false, "remove them")
	f.BoolVar(&user, "user", false, "the settings of the user, in place of those of the project")
	cmd.MarkFlagsMutuallyExclusive("install", "uninstall")
	return cmd
}

func (c *creation) hook(ctx context.Context, in *hookInput) error {
	switch in.Event {
	case "WorktreeCreate":
		c.o.Source, c.o.Repo = cmp.Or(in.Dir, "."), c.repo
		c.o.Name = workspace.UniqueName(cmp.Or(in.Name, in.Other))
		c.o.Reuse, c.o.Local = true, []string{".claude/settings.local.json"}
		c.o.Agent = cmp.Or(in.Agent, c.o.Agent)
		return c.make(ctx)
	case "WorktreeRemove":
		h, err := c.host()
		if err != nil {
			return err
		}
		w, err := h.At(in.Path)
		if err != nil {
			return exit(err)
		}
		return remove(ctx, c.a, h, w, true, false)
	}
	return cli.ExitWith(
		cli.ExitUsage, fmt.Errorf("the event is %q: want WorktreeCreate or WorktreeRemove", cli.Clean(in.Event)),
	)
}
