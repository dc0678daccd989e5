package main

import (
	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/account"
	"github.com/interlockdev/interlock/cmd/interlock/internal/approval"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/credential"
	"github.com/interlockdev/interlock/cmd/interlock/internal/effect"
	"github.com/interlockdev/interlock/cmd/interlock/internal/file"
	"github.com/interlockdev/interlock/cmd/interlock/internal/guard"
	"github.com/interlockdev/interlock/cmd/interlock/internal/inspect"
	"github.com/interlockdev/interlock/cmd/interlock/internal/journal"
	"github.com/interlockdev/interlock/cmd/interlock/internal/lease"
	"github.com/interlockdev/interlock/cmd/interlock/internal/mailbox"
	"github.com/interlockdev/interlock/cmd/interlock/internal/namespace"
	"github.com/interlockdev/interlock/cmd/interlock/internal/pattern"
	"github.com/interlockdev/interlock/cmd/interlock/internal/queue"
	"github.com/interlockdev/interlock/cmd/interlock/internal/run"
	"github.com/interlockdev/interlock/cmd/interlock/internal/serve"
	"github.com/interlockdev/interlock/cmd/interlock/internal/state"
	"github.com/interlockdev/interlock/cmd/interlock/internal/task"
	"github.com/interlockdev/interlock/cmd/interlock/internal/try"
)

// Kinds of commands, in the order of the help text.
const (
	groupHold  = "hold"
	groupState = "state"
	groupTask  = "task"
	groupLook  = "look"
	groupRule  = "rule"
	groupServe = "serve"
	groupTry   = "try"
)

func newRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:     "interlock",
		Short:   "Traffic control for swarms of AI agents",
		Version: cli.Version(),
		Long: `Interlock is traffic control for swarms of AI agents: leases on shared resources, a fair and
durable line of waiters, and fencing tokens that refuse late writers.

  interlock serve --data-dir DIR              start a server on this machine
  interlock run account:12345 -- ./charge     run a command while holding a lease
  interlock why account:12345                 show holders, waiters, and what to do`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cli.NoCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := a.CheckGlobals(cmd); err != nil {
				return err
			}
			a.Started = true
			return nil
		},
	}
	root.SetVersionTemplate("interlock {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version; interlock version prints more")
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.AddGroup(
		&cobra.Group{ID: groupHold, Title: "Leases:"},
		&cobra.Group{ID: groupState, Title: "Documents, files and effects:"},
		&cobra.Group{ID: groupTask, Title: "Tasks:"},
		&cobra.Group{ID: groupLook, Title: "Inspection:"},
		&cobra.Group{ID: groupRule, Title: "Administration:"},
		&cobra.Group{ID: groupServe, Title: "Servers:"},
		&cobra.Group{ID: groupTry, Title: "Demos and benchmarks:"},
	)
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true}) // --help is enough
	a.Server.Define(root.PersistentFlags())
	root.PersistentFlags().StringVarP(
		&a.Output, "output", "o", "text", "the output `format`: text, or json for the server's own answers",
	)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.Usagef("%w", err) })
	cobra.AddTemplateFunc(
		"shared", func(cmd *cobra.Command) string { return cli.SharedFlags(cmd).FlagUsagesWrapped(helpWidth) },
	)
	cobra.AddTemplateFunc("own", func(cmd *cobra.Command) string { return cmd.LocalFlags().FlagUsagesWrapped(helpWidth) })
	root.SetUsageTemplate(usageTemplate)

	for _, group := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{groupHold, []*cobra.Command{
			run.New(a), lease.NewLock(a), lease.NewRenew(a), lease.NewRelease(a), lease.NewConvert(a), lease.NewArrive(a),
			lease.NewPark(a), lease.NewResume(a),
			run.NewWaitFor(a), run.NewPartition(a), lease.NewFence(a),
		}},
		{groupState, []*cobra.Command{state.New(a), state.NewCommit(a), effect.New(a), file.New(a)}},
		{groupTask, []*cobra.Command{task.New(a), queue.New(a), mailbox.New(a), account.New(a), approval.New(a)}},
		{
			groupLook,
			[]*cobra.Command{
				inspect.NewLs(a), inspect.NewGet(a), lease.NewShow(a), inspect.NewWhy(a), inspect.NewWaits(a), inspect.NewHealth(a), inspect.NewHot(a),
				inspect.NewContention(a), inspect.NewEvents(a),
			},
		},
		{groupRule, []*cobra.Command{pattern.New(a), namespace.New(a), lease.NewRevoke(a)}},
		{groupServe, []*cobra.Command{serve.New(a), guard.New(a), journal.New(a), journal.NewMigrate(a), credential.New(a)}},
		{groupTry, []*cobra.Command{try.NewDemo(a), try.NewBench(a)}},
		{"", []*cobra.Command{newVersion(a)}},
	} {
		for _, cmd := range group.commands {
			cmd.GroupID = group.id
			root.AddCommand(cmd)
		}
	}
	root.InitDefaultCompletionCmd()
	return root
}

// helpWidth is fixed, so that the help text is the same everywhere.
const helpWidth = 100

const usageTemplate = `Usage:{{if not .HasAvailableSubCommands}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if .Groups}}

Also:{{else}}

Commands:{{end}}{{range $cmds}}{{if (and (eq .GroupID "") .IsAvailableCommand)}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{own . | trimTrailingWhitespaces}}{{end}}{{with shared .}}

Flags of every command:
{{. | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help describes a command.{{end}}
`
