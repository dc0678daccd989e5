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
)

var update = flag.Bool("update", false, "write the reference of the command line anew")

// references are the pages of the reference, with the groups of commands, or the
// commands, that each has; the last one has the rest.
var references = []struct {
	file, begins string
	groups       []string
}{
	{"../../docs/cli.md", `# The command line

This page is made from ` + "`interlock COMMAND --help`" + ` by ` + "`go test ./cmd/interlock -run Reference -update`" + `. It has the commands with which leases are
held; those that change documents and claim effects are in [cli-state.md](cli-state.md), those that hand work on in
[cli-delegate.md](cli-delegate.md), those that keep accounts in [cli-account.md](cli-account.md), those that look, play
scenes and measure in [cli-look.md](cli-look.md), those that check fences where agents write in [cli-guard.md](cli-guard.md), those for operators and servers in [cli-operator.md](cli-operator.md).

What was asked for goes to standard output, everything else to standard error. With ` + "`-o json`" + ` standard output has the server's own
answers, one a line, also when an answer is a refusal. A flag that names a variable in square brackets can be set by that variable; the flag
wins. Colours are for terminals only, and ` + "`NO_COLOR`" + ` turns them off.

The flags of every command stand here once, at ` + "`interlock`" + `. Those that say which server is meant are not for commands that talk to none.
`, []string{groupHold}},
	{"../../docs/cli-state.md", `# The command line of guarded state

This page is made from ` + "`interlock COMMAND --help`" + ` by ` + "`go test ./cmd/interlock -run Reference -update`" + `. It has the commands that change documents and claim
effects. How output and flags work is said in [cli.md](cli.md).
`, []string{groupState}},
	{"../../docs/cli-account.md", `# The command line of accounts

This page is made from ` + "`interlock COMMAND --help`" + ` by ` + "`go test ./cmd/interlock -run Reference -update`" + `. It has the commands of the
single writer of accounts and of its ledger; [account.md](account.md) is the guide. How output and flags work is said in [cli.md](cli.md).
`, []string{"account"}},
	{"../../docs/cli-delegate.md", `# The command line of tasks and mailboxes

This page is made from ` + "`interlock COMMAND --help`" + ` by ` + "`go test ./cmd/interlock -run Reference -update`" + `. It has the commands that hand work to
queues and to the single writers of keys, and that answer what is asked of a person. How output and flags work is said in [cli.md](cli.md).
`, []string{groupTask}},
	{"../../docs/cli-look.md", `# The command line of looking

This page is made from ` + "`interlock COMMAND --help`" + ` by ` + "`go test ./cmd/interlock -run Reference -update`" + `. It has the commands that show how things
stand, and those that play a scene or measure. How output and flags work is said in [cli.md](cli.md).
`, []string{groupLook, groupTry}},
	{"../../docs/cli-guard.md", `# The command line of guards

This page is made from ` + "`interlock COMMAND --help`" + ` by ` + "`go test ./cmd/interlock -run Reference -update`" + `. It has the commands that check fences
where agents write; [guards.md](guards.md) describes what they promise. How output and flags work is described in [cli.md](cli.md).
`, []string{"guard"}},
	{"../../docs/cli-operator.md", `# The command line of operators

This page is made from ` + "`interlock COMMAND --help`" + ` by ` + "`go test ./cmd/interlock -run Reference -update`" + `. How output and flags work is said in
[cli.md](cli.md).
`, nil},
}

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
		fmt.Fprintf(page, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(), strings.TrimSpace(withoutShared(trimLines(help.String()))))
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
	visit(newRoot(newApp(nil)), &pages[0])
	for i := range references {
		file, want := references[i].file, pages[i].Bytes()
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
