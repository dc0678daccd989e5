//go:build unix

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

var update = flag.Bool("update", false, "write the reference of the command line anew")

// references are the pages of the reference, with the topics, or the commands, that each has.
var references = []struct {
	file, begins string
	topics       []string
}{
	{"cli.md", `# Command reference

` + made + `

Results go to standard output, diagnostics to standard error. With ` + "`-o json`" + ` standard output has the server's
own answers, one per line, refusals included. A flag with a variable in square brackets can be set by that variable;
the flag wins. Colours are for terminals only, and ` + "`NO_COLOR`" + ` turns them off.

| page | commands |
|---|---|
| this one | run, lock, unlock, why, log, and the tool itself |
| [cli-lease.md](cli-lease.md) | leases, keys, agents, barriers, pools and fences |
| [cli-state.md](cli-state.md) | documents, shared files and effects |
| [cli-agent.md](cli-agent.md) | the setup of coding agents, and their hooks |
| [cli-merge.md](cli-merge.md) | workspaces and the merge queue |
| [cli-task.md](cli-task.md) | tasks |
| [cli-work.md](cli-work.md) | queues, approvals, messages, writers and workflows |
| [cli-account.md](cli-account.md) | the account writer and its ledger |
| [cli-guard.md](cli-guard.md) | guards |
| [cli-rule.md](cli-rule.md) | patterns, namespaces, webhooks and credentials |
| [cli-operator.md](cli-operator.md) | servers, demos and benchmarks |

The flags that every command has are listed once, at [interlock options](#interlock-options). Commands that talk to no
server do not have those that select one. ` + "`list`, `get`, `create` and `delete`" + ` have short forms:
` + "`ls`, `show`, `new` and `rm`" + `.
`, []string{topicDaily, topicTool}},
	{"cli-lease.md", "# Commands: leases\n\n" + made + shared, []string{topicLeases}},
	{"cli-state.md", "# Commands: documents, files and effects\n\n" + made + shared, []string{topicData}},
	{
		"cli-agent.md",
		"# Commands: coding agents\n\n" + made +
			"\nThe guides are [hooks.md](../hooks.md) and [mcp.md](../mcp.md)." + shared,
		[]string{topicAgents},
	},
	{
		"cli-merge.md",
		"# Commands: workspaces and the merge queue\n\n" + made +
			"\nThe guides are [workspaces.md](../workspaces.md) and [merge.md](../merge.md)." + shared,
		[]string{"workspace", "merge"},
	},
	{
		"cli-account.md", "# Commands: accounts\n\n" + made + "\nThe guide is [account.md](../account.md)." + shared,
		[]string{"account"},
	},
	{
		"cli-task.md", "# Commands: tasks\n\n" + made + "\nThe guide is [tasks.md](../tasks.md)." + shared, []string{"task"},
	},
	{
		"cli-work.md",
		"# Commands: queues, approvals, messages and workflows\n\n" + made +
			"\nThe guides are [tasks.md](../tasks.md) and [mailbox.md](../mailbox.md)." + shared,
		[]string{topicWork},
	},
	{
		"cli-guard.md", "# Commands: guards\n\n" + made + "\n[guards.md](../guards.md) describes what they promise." + shared,
		[]string{"guard"},
	},
	{
		"cli-rule.md",
		"# Commands: rules of a namespace\n\n" + made +
			"\nThe guides are [patterns.md](../patterns.md) and [operations.md](../operations.md)." + shared,
		[]string{topicRules},
	},
	{
		"cli-operator.md",
		"# Commands: servers, demos and benchmarks\n\n" + made +
			"\nThe guide is [operations.md](../operations.md)." + shared,
		[]string{"serve", topicServers, topicTrials},
	},
}

const (
	referenceDir = "../../docs/reference/"
	// made and shared are in the first lines of each page.
	made   = "Generated from `interlock COMMAND --help` by `go test ./cmd/interlock -run Reference -update`."
	shared = "\nOutput, and the flags that every command has: [cli.md](cli.md).\n"
)

// The reference is the help text of every command. go test ./cmd/interlock -run
// Reference -update writes it anew.
func TestReference(t *testing.T) {
	pages := make([]bytes.Buffer, len(references))
	for i := range references {
		pages[i].WriteString(references[i].begins)
	}
	var visit func(*cobra.Command, *bytes.Buffer)
	visit = func(cmd *cobra.Command, page *bytes.Buffer) {
		if cmd.Hidden || cmd.Name() == "completion" {
			return
		}
		var help bytes.Buffer
		cmd.InitDefaultHelpFlag()
		cmd.SetOut(&help)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(help.String(), "interlock options lists the flags of every command.\n", "")
		if cmd.Name() == "options" {
			text += "\nFlags of every command:\n" + sharedFlags(cmd)
		}
		fmt.Fprintf(
			page, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(), strings.TrimSpace(trimLines(text)),
		)
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %q is no short text", cmd.CommandPath(), cmd.Short)
		}
		for _, sub := range cmd.Commands() {
			if !cmd.HasParent() {
				page = &pages[pageOf(sub)]
			}
			visit(sub, page)
		}
	}
	root := newRoot(cli.NewApp(nil))
	root.InitDefaultHelpCmd()
	visit(root, &pages[0])
	for i := range references {
		file, want := referenceDir+references[i].file, pages[i].Bytes()
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what --help says: go test ./cmd/interlock -run Reference -update writes it anew", file)
		}
	}
}

// pageOf is on which page a command stands: that of its own name, else that of its topic.
func pageOf(cmd *cobra.Command) int {
	for _, name := range []string{cmd.Name(), cmd.GroupID} {
		for i := range references {
			if slices.Contains(references[i].topics, name) {
				return i
			}
		}
	}
	return 0
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// The first screen is read as a whole.
func TestFirstScreen(t *testing.T) {
	var help bytes.Buffer
	root := newRoot(cli.NewApp(nil))
	root.InitDefaultHelpCmd()
	root.SetOut(&help)
	if err := root.Help(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(help.String()), "\n")
	if len(lines) > 30 {
		t.Errorf("the first screen has %d lines, of at most 30:\n%s", len(lines), help.String())
	}
	for _, line := range lines {
		if len(line) > 100 {
			t.Errorf("%q has %d columns, of at most 100", line, len(line))
		}
	}
	for _, cmd := range root.Commands() {
		if !strings.Contains(help.String(), " "+cmd.Name()) {
			t.Errorf("the first screen has no command %s", cmd.Name())
		}
	}
}

// A short flag means one thing, whatever the command.
func TestShortFlags(t *testing.T) {
	meaning := map[string]string{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Shorthand == "" {
				return
			}
			if other := meaning[f.Shorthand]; other != "" && other != f.Name {
				t.Errorf("%s: -%s is --%s here and --%s elsewhere", cmd.CommandPath(), f.Shorthand, f.Name, other)
			}
			meaning[f.Shorthand] = f.Name
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(cli.NewApp(nil)))
}

// Each command that the dashboard names exists; where it shows arguments, they and the flags fit.
func TestDashboardCommands(t *testing.T) {
	files, err := filepath.Glob("../../web/app/*.jsx")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`<code>interlock ([^<]+)</code>`)
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			n++
			cmd, rest, err := newRoot(cli.NewApp(nil)).Find(strings.Fields(m[1]))
			if err != nil || cmd.Runnable() == cmd.HasSubCommands() {
				t.Errorf("%s: there is no command %q", file, m[1])
				continue
			}
			if len(rest) == 0 {
				continue // named, without arguments
			}
			err = cmd.ParseFlags(rest)
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %q: %v", file, m[1], err)
			}
		}
	}
	if n < 10 {
		t.Errorf("found %d commands in the dashboard", n)
	}
}

// Each hint for another name of a command is a command.
func TestHints(t *testing.T) {
	root := newRoot(cli.NewApp(nil))
	for word, lines := range cli.Foreign {
		if cmd, _, _ := root.Find([]string{word}); cmd != root {
			t.Errorf("%s is a command, and has hints for another", word)
		}
		for _, line := range lines {
			name, flag, _ := strings.Cut(line, " --")
			cmd, rest, err := root.Find(strings.Fields(name))
			if err != nil || len(rest) > 0 || !cmd.HasParent() {
				t.Errorf("%s: there is no command %q", word, name)
			} else if flag != "" && cmd.Flags().Lookup(flag) == nil {
				t.Errorf("%s: %s has no flag --%s", word, name, flag)
			}
		}
	}
}
