//go:build unix

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

var (
	namedCommand = regexp.MustCompile(`\binterlock((?: [a-z][a-z-]*)+)((?: [A-Z]+| --[a-z][a-z-]*(?: [A-Z0-9]+[a-z]?)?)*)`)
	namedFlag    = regexp.MustCompile(` --([a-z][a-z-]*)`)
)

// Every command that a text of the program names exists, with its flags. Prose that begins with the product's name is
// no command.
func TestNamedCommandsExist(t *testing.T) {
	root, n := newRoot(cli.NewApp(nil)), 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "node_modules" || name == "test" || path != "../.." && name[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(x ast.Node) bool {
			e, ok := x.(ast.Expr)
			if !ok {
				return true
			}
			text, constant := folded(e)
			if !constant {
				return true
			}
			for _, m := range namedCommand.FindAllStringSubmatch(text, -1) {
				if problem := namesCommand(root, m[1], m[2]); problem != "" {
					t.Errorf("%s: %q: %s", set.Position(e.Pos()), m[0], problem)
				}
				n++
			}
			return false
		})
		return nil
	})
	if err != nil || n < 300 {
		t.Errorf("found %d commands, %v", n, err)
	}
}

// folded returns the text of a constant expression: a literal, or a sum of such.
func folded(e ast.Expr) (text string, constant bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, ok := folded(e.X)
		right, also := folded(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// namesCommand returns what is wrong with the words and the flags behind the program's name.
func namesCommand(root *cobra.Command, words, more string) string {
	cmd := root
	for _, word := range strings.Fields(words) {
		next, _, err := cmd.Find([]string{word})
		switch {
		case err == nil && next != cmd:
			cmd = next
			continue
		case cmd != root && cmd.HasSubCommands() && cmd.ValidateArgs([]string{word}) != nil && word != "has": // prose
			return cmd.CommandPath() + " has no " + word
		}
		break
	}
	if cmd == root {
		return ""
	}
	cmd.InitDefaultHelpFlag()
	for _, m := range namedFlag.FindAllStringSubmatch(more, -1) {
		if cmd.Flags().Lookup(m[1]) == nil && cmd.InheritedFlags().Lookup(m[1]) == nil {
			return cmd.CommandPath() + " has no --" + m[1]
		}
	}
	return ""
}
