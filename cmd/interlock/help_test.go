package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

var update = flag.Bool("update", false, "write the reference of the command line anew")

// references are the pages of the reference, with the groups of commands, or the
// commands, that each has; the last one has the rest.
var references = []struct {
	file, begins string
	groups       []string
}{
	{"cli.md", `# Command reference

` + made + `

Results go to standard output, diagnostics to standard error. With ` + "`-o json`" + ` standard output has the server's own
answers, one per line, refusals included. A flag with a variable in square brackets can be set by that variable; the flag
wins. Colours are for terminals only, and ` + "`NO_COLOR`" + ` turns them off.

| page | commands |
|---|---|
| this one | leases |
| [cli-state.md](cli-state.md) | documents, shared files and effects |
| [cli-delegate.md](cli-delegate.md) | tasks, queues, mailboxes and approvals |
| [cli-account.md](cli-account.md) | the account writer and its ledger |
| [cli-look.md](cli-look.md) | inspection, demos and benchmarks |
| [cli-guard.md](cli-guard.md) | guards |
| [cli-operator.md](cli-operator.md) | administration and servers |

The flags that every command has are listed once, at ` + "`interlock`" + ` below. Commands that talk to no server do not have those that select one.
`, []string{groupHold}},
	{"cli-state.md", "# Commands: documents, files and effects\n\n" + made + shared, []string{groupState}},
	{
		"cli-account.md", "# Commands: accounts\n\n" + made + " The guide is [account.md](../account.md)." + shared,
		[]string{"account"},
	},
	{
		"cli-delegate.md",
		"# Commands: tasks, mailboxes and approvals\n\n" + made +
			" The guides are [tasks.md](../tasks.md) and [mailbox.md](../mailbox.md)." + shared,
		[]string{groupTask},
	},
	{"cli-look.md", "# Commands: inspection, demos and benchmarks\n\n" + made + shared, []string{groupLook, groupTry}},
	{
		"cli-guard.md", "# Commands: guards\n\n" + made + " [guards.md](../guards.md) describes what they promise." + shared,
		[]string{"guard"},
	},
	{
		"cli-operator.md",
		"# Commands: administration and servers\n\n" + made + " The guide is [operations.md](../operations.md)." + shared,
		nil,
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
		fmt.Fprintf(
			page, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(),
			strings.TrimSpace(withoutShared(trimLines(help.String()))),
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
	visit(newRoot(cli.NewApp(nil)), &pages[0])
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

// pageOf is on which page a command stands.
func pageOf(cmd *cobra.Command) int {
	for i := range references {
		if slices.Contains(references[i].groups, cmd.GroupID) || slices.Contains(references[i].groups, cmd.Name()) {
			return i
		}
	}
	return len(references) - 1
}

// withoutShared leaves out the flags of every command.
func withoutShared(s string) string {
	before, shared, found := strings.Cut(s, "\n\nFlags of every command:\n")
	if !found {
		return s
	}
	_, after, _ := strings.Cut(shared, "\n\n")
	return before + "\n\n" + after
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
