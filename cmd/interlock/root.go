package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock/cmd/interlock/internal/account"
	"github.com/interlockdev/interlock/cmd/interlock/internal/approval"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/contexts"
	"github.com/interlockdev/interlock/cmd/interlock/internal/credential"
	"github.com/interlockdev/interlock/cmd/interlock/internal/effect"
	"github.com/interlockdev/interlock/cmd/interlock/internal/file"
	"github.com/interlockdev/interlock/cmd/interlock/internal/guard"
	"github.com/interlockdev/interlock/cmd/interlock/internal/hooks"
	"github.com/interlockdev/interlock/cmd/interlock/internal/inspect"
	"github.com/interlockdev/interlock/cmd/interlock/internal/journal"
	"github.com/interlockdev/interlock/cmd/interlock/internal/lease"
	"github.com/interlockdev/interlock/cmd/interlock/internal/mcp"
	"github.com/interlockdev/interlock/cmd/interlock/internal/merge"
	"github.com/interlockdev/interlock/cmd/interlock/internal/message"
	"github.com/interlockdev/interlock/cmd/interlock/internal/namespace"
	"github.com/interlockdev/interlock/cmd/interlock/internal/past"
	"github.com/interlockdev/interlock/cmd/interlock/internal/pattern"
	"github.com/interlockdev/interlock/cmd/interlock/internal/queue"
	"github.com/interlockdev/interlock/cmd/interlock/internal/report"
	"github.com/interlockdev/interlock/cmd/interlock/internal/run"
	"github.com/interlockdev/interlock/cmd/interlock/internal/serve"
	"github.com/interlockdev/interlock/cmd/interlock/internal/state"
	"github.com/interlockdev/interlock/cmd/interlock/internal/task"
	"github.com/interlockdev/interlock/cmd/interlock/internal/top"
	"github.com/interlockdev/interlock/cmd/interlock/internal/trace"
	"github.com/interlockdev/interlock/cmd/interlock/internal/try"
	"github.com/interlockdev/interlock/cmd/interlock/internal/webhook"
	"github.com/interlockdev/interlock/cmd/interlock/internal/workspace"
)

// The topics of the commands. Those of every day have a line each on the first screen, all
// others share one with their topic.
const (
	topicDaily   = "daily"
	topicLeases  = "leases"
	topicData    = "data"
	topicAgents  = "agents"
	topicWork    = "work"
	topicRules   = "rules"
	topicServers = "servers"
	topicTrials  = "trials"
	topicTool    = "other"
)

func init() { cobra.EnableCommandSorting = false } // the order of newRoot and of the groups is meant

func newRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "interlock",
		Short: "Traffic control for swarms of AI agents",
		Long: `Interlock is traffic control for swarms of AI agents: leases on shared resources, a fair and
durable line of waiters, and fencing tokens that refuse late writers.

  interlock serve --data-dir DIR              start a server on this machine
  interlock run account:12345 -- ./charge     run a command while holding a lease`,
		Version:       cli.Version(),
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
	root.Flags().BoolP("version", "v", false, "print the version; interlock version prints more")
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetHelpCommand(newHelp())
	a.Server.Define(root.PersistentFlags())
	a.DefineContext(root.PersistentFlags())
	root.PersistentFlags().StringVarP(
		&a.Output, "output", "o", "text", "the output `format`: text, or json for the server's own answers",
	)
	_ = root.RegisterFlagCompletionFunc(
		"output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp),
	)
	root.SetFlagErrorFunc(cli.FlagError)
	cobra.AddTemplateFunc("own", func(cmd *cobra.Command) string { return ownFlags(cmd).FlagUsagesWrapped(helpWidth) })
	cobra.AddTemplateFunc("topics", topics)
	root.SetUsageTemplate(usageTemplate)
	root.SetVersionTemplate("interlock {{.Version}}\n")

	for _, topic := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{topicDaily, []*cobra.Command{
			run.New(a), lease.NewLock(a), lease.NewUnlock(a), inspect.NewWhy(a), inspect.NewStatus(a),
			top.New(a), inspect.NewLog(a), report.New(a), past.New(a, newRoot),
			serve.New(a),
		}},
		{topicLeases, []*cobra.Command{
			lease.New(a), inspect.NewKey(a), run.NewAgent(a), run.NewAgents(a),
			lease.NewBarrier(a), run.NewPool(a), lease.NewFence(a),
		}},
		{topicData, []*cobra.Command{state.New(a), file.New(a), effect.New(a)}},
		{topicAgents, []*cobra.Command{workspace.New(a), merge.New(a), hooks.NewInit(a), hooks.New(a)}},
		{topicWork, []*cobra.Command{
			task.New(a), queue.New(a), approval.New(a), message.New(a), message.NewWriter(a), run.NewWorkflow(a),
			account.New(a),
		}},
		{topicRules, []*cobra.Command{pattern.New(a), namespace.New(a), webhook.New(a), credential.New(a)}},
		{topicServers, []*cobra.Command{
			guard.New(a), mcp.New(a), trace.New(a), inspect.NewHealth(a), journal.NewAdmin(a, serve.NewRestore(a)),
		}},
		{topicTrials, []*cobra.Command{try.NewDemo(a), try.NewBench(a)}},
		{topicTool, []*cobra.Command{contexts.New(a), newVersion(a), newOptions(a)}},
	} {
		root.AddGroup(&cobra.Group{ID: topic.id, Title: topic.id})
		for _, cmd := range topic.commands {
			cmd.GroupID = topic.id
			root.AddCommand(cmd)
			shortForms(cmd)
			watchable(a, cmd)
		}
	}
	root.SetHelpCommandGroupID(topicTool)
	root.SetCompletionCommandGroupID(topicTool)
	root.InitDefaultCompletionCmd()
	return root
}

// shortForms lets verbs be typed as a shell has them.
func shortForms(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if short := map[string]string{
			"list": "ls", "get": "show", "create": "new", "delete": "rm",
		}[sub.Name()]; short != "" {
			sub.Aliases = append(sub.Aliases, short)
		}
		shortForms(sub)
	}
}

// watchable adds --watch to the commands that ask a server how something stands.
func watchable(a *cli.App, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		watchable(a, sub)
	}
	looks := []string{"list", "get", "why", "status", "agents", "waits", "hot", "contention"}
	if slices.Contains(looks, cmd.Name()) && !cmd.HasSubCommands() && cmd.Annotations[cli.Offline] == "" {
		cli.Watchable(a, cmd)
	}
}

// newHelp returns the command help.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:         "help [COMMAND]",
		Short:       "Describe a command",
		Example:     "  interlock help task create",
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return cli.NoCommand(about, rest)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// newOptions returns the command options.
func newOptions(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:         "options",
		Short:       "List the flags of every command",
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.Say(
				"Every command takes these flags; one without a server takes none that selects a server:\n\n%s", sharedFlags(cmd),
			)
			return nil
		},
	}
}

// sharedFlags describes the flags of every command.
func sharedFlags(cmd *cobra.Command) string {
	return cmd.Root().PersistentFlags().FlagUsagesWrapped(helpWidth)
}

// ownFlags are the flags that a command has for itself. That each has --help needs no line.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = cmd.Flags().SortFlags
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			own.AddFlag(f)
		}
	})
	return own
}

// topics is the list of commands on the first screen.
func topics(root *cobra.Command) string {
	var daily, rest strings.Builder
	for _, topic := range root.Groups() {
		var names []string
		for _, cmd := range root.Commands() {
			switch {
			case cmd.GroupID != topic.ID || cmd.Hidden:
			case topic.ID == topicDaily:
				fmt.Fprintf(&daily, "  %-9s %s\n", cmd.Name(), cmd.Short)
			default:
				names = append(names, cmd.Name())
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(&rest, "  %-9s %s\n", topic.Title, strings.Join(names, "  "))
		}
	}
	return "Every day:\n" + daily.String() +
		"\nBy topic, most with list, get, set and delete (short ls, show and rm):\n" + rest.String()
}

// helpWidth is fixed, so that the help text is the same everywhere.
const helpWidth = 100

const usageTemplate = `{{if not .HasParent}}{{topics .}}
interlock help COMMAND describes a command, interlock options lists the flags of all.
{{else}}Usage:{{if not .HasAvailableSubCommands}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{with own .}}

Flags:
{{. | trimTrailingWhitespaces}}{{end}}

{{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND --help describes a command.
{{end}}interlock options lists the flags of every command.
{{end}}`
