package demo

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// features are what the agents add, one each.
var features = []string{
	"refund", "search", "invoice", "wishlist", "coupon", "review", "shipping", "taxes", "login", "export", "archive",
	"report",
}

// edit is a line that an agent adds to a file, before the file's mark.
type edit struct{ file, line, mark string }

// edits are the changes that a feature consists of. The second one does not build without the first.
func edits(feature string) []edit {
	return []edit{
		{
			"handlers.go", fmt.Sprintf("func %s(order string) string { return %q + order }", feature, feature+" of "),
			"// More handlers.",
		},
		{"routes.go", fmt.Sprintf("\t%q: %s,", "/"+feature, feature), "\t// More routes."},
	}
}

// in returns the file with the line.
func (e edit) in(text string) string { return strings.Replace(text, e.mark, e.line+"\n"+e.mark, 1) }

// makeShop makes the repository that the agents work in.
func makeShop(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"handlers.go": "package shop\n\n// More handlers.\n",
		"routes.go":   "package shop\n\nvar routes = map[string]func(string) string{\n\t// More routes.\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if out, err := exec.CommandContext(ctx, "git", "init", "--quiet", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	return nil
}

// build type-checks the program in a folder, and returns the first error.
func build(dir string) error {
	p, err := readProgram(dir)
	if err != nil {
		return err
	}
	return p.build()
}

// program is the text of each Go file by its name.
type program map[string]string

// readProgram reads the Go files of a folder.
func readProgram(dir string) (program, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p := program{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p[filepath.Base(name)] = string(text)
	}
	return p, nil
}

// build type-checks a program, and returns the first error.
func (p program) build() error {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(p)) {
		file, err := parser.ParseFile(fset, name, p[name], 0)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	_, err := new(types.Config).Check("shop", fset, files, nil)
	return err
}
