package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

const reference = "../../docs/cli.md"

// docs/cli.md is the help text of every command. go test ./cmd/interlock -run
// Reference -update writes it anew.
func TestReference(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString(`# The command line

This page is made from ` + "`interlock COMMAND --help`" + ` by ` + "`go test ./cmd/interlock -run Reference -update`" + `.

What was asked for goes to standard output, everything else to standard error. With ` + "`-o json`" + ` standard output has the server's own
answers, one a line, also when an answer is a refusal. A flag that names a variable in square brackets can be set by that variable; the flag
wins. Colours are for terminals only, and ` + "`NO_COLOR`" + ` turns them off.
`)
	root := newRoot(newApp(nil))
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "completion" {
			return
		}
		var help bytes.Buffer
		cmd.InitDefaultHelpFlag()
		cmd.SetOut(&help)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&doc, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(), strings.TrimSpace(trimLines(help.String())))
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %q is no short text", cmd.CommandPath(), cmd.Short)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	if *update {
		if err := os.WriteFile(reference, doc.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, doc.Bytes()) {
		t.Errorf("docs/cli.md is not what --help says: go test ./cmd/interlock -run Reference -update writes it anew")
	}
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
