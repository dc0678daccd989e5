package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// app is the common state of the commands of one process.
type app struct {
	args []string // the command line
	in   *os.File
	out  io.Writer
	err  io.Writer

	// paint reports whether standard output is a terminal that shows colours, screen
	// whether it is a terminal at all.
	paint, screen bool
	// started reports that the command line was understood and the command runs.
	started bool

	server target
	output string // -o
}

func newApp(args []string) *app {
	return &app{
		args: args, in: os.Stdin, out: os.Stdout, err: os.Stderr, paint: colourful(os.Stdout), screen: isTerminal(os.Stdout),
	}
}

// colourful reports whether colours may be written to f (see no-color.org).
func colourful(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// complain writes a line to standard error.
func (a *app) complain(format string, args ...any) {
	fmt.Fprintln(a.err, "interlock: "+fmt.Sprintf(format, args...))
}

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

// Annotations of commands.
const (
	offline  = "offline"  // it talks to no server: the flags that name one are not shown, and refused
	textOnly = "textOnly" // it has no -o json
)

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "interlock",
		Short: "Traffic control for swarms of AI agents",
		Long: `Interlock is traffic control for swarms of AI agents: leases on shared resources, a fair and
durable line of waiters, and fencing tokens that refuse late writers.

  interlock serve --data-dir DIR              start a server on this machine
  interlock run account:12345 -- ./charge     run a command while holding a lease
  interlock why account:12345                 show holders, waiters, and what to do`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := a.checkGlobals(cmd); err != nil {
				return err
			}
			a.started = true
			return nil
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
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
	a.server.flags(root.PersistentFlags())
	root.PersistentFlags().StringVarP(
		&a.output, "output", "o", "text", "the output `format`: text, or json for the server's own answers",
	)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	cobra.AddTemplateFunc(
		"shared", func(cmd *cobra.Command) string { return sharedFlags(cmd).FlagUsagesWrapped(helpWidth) },
	)
	cobra.AddTemplateFunc("own", func(cmd *cobra.Command) string { return cmd.LocalFlags().FlagUsagesWrapped(helpWidth) })
	root.SetUsageTemplate(usageTemplate)

	for _, group := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{groupHold, []*cobra.Command{
			newRun(a), newLock(a), newRenew(a), newRelease(a), newConvert(a), newArrive(a), newPark(a), newResume(a),
			newWaitFor(a), newPartition(a), newFence(a),
		}},
		{groupState, []*cobra.Command{newState(a), newCommit(a), newEffect(a), newFile(a)}},
		{groupTask, []*cobra.Command{newTask(a), newQueue(a), newMailbox(a), newAccount(a), newApprove(a)}},
		{
			groupLook,
			[]*cobra.Command{newLs(a), newGet(a), newShow(a), newWhy(a), newWaits(a), newHot(a), newContention(a), newEvents(a)},
		},
		{groupRule, []*cobra.Command{newPattern(a), newNamespace(a), newRevoke(a)}},
		{groupServe, []*cobra.Command{newServe(a), newGuard(a), newJournal(a), newMigrate(a), newCredential(a)}},
		{groupTry, []*cobra.Command{newDemo(a), newBench(a)}},
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

// checkGlobals refuses what a command would silently ignore.
func (a *app) checkGlobals(cmd *cobra.Command) error {
	switch a.output {
	case "text", "json":
	default:
		return usage("-o %s: want text or json", a.output)
	}
	var ignored []string
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && hidden(cmd, f.Name) && !given(f) {
			ignored = append(ignored, "--"+f.Name)
		}
	})
	if len(ignored) > 0 {
		return usage("%s does not take %s", cmd.CommandPath(), strings.Join(ignored, ", "))
	}
	if annotated(cmd, offline) {
		return nil
	}
	if url, grpc := cmd.Flag("url"), cmd.Flag("grpc-addr"); url.Changed && !given(url) && given(grpc) {
		a.server.GRPC = "" // the variable is about another server than the flag
	}
	return a.server.complete()
}

// hidden reports whether a shared flag means nothing to a command.
func hidden(cmd *cobra.Command, flag string) bool {
	if flag == "output" {
		return annotated(cmd, textOnly)
	}
	return annotated(cmd, offline)
}

func annotated(cmd *cobra.Command, key string) bool { return cmd.Annotations[key] != "" }

func sharedFlags(cmd *cobra.Command) *pflag.FlagSet {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !hidden(cmd, f.Name) {
			shown.AddFlag(f)
		}
	})
	return shown
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
