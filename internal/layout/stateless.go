package layout

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
)

// stateless are the files of the engine that know none of its state: the commands, their
// fingerprints, and what is wrong with the form of a command.
// They refer to each other and to no other file of the engine, so that each can be read alone
// and can become a package of its own.
var stateless = []string{
	"engine/body.go", "engine/command.go", "engine/command_task.go", "engine/command_webhook.go", "engine/view.go",
	"engine/outcome.go", "engine/effect.go", "engine/shown.go", "engine/fingerprint_gen.go",
	"engine/check.go", "engine/commit_form.go", "engine/task_form.go",
	"engine/key.go", "engine/merge.go",
}

// Stateless type-checks the engine and returns where a stateless file refers to another one.
func Stateless(root string) ([]string, error) {
	packages, err := engineSources(root)
	if err != nil {
		return nil, err
	}
	return checkStateless(root, packages["engine"], stateless)
}

func checkStateless(root string, sources map[string]string, stateless []string) (problems []string, err error) {
	for _, name := range stateless {
		if sources[name] == "" {
			problems = append(
				problems, fmt.Sprintf("%s: is in the list of internal/layout/stateless.go and does not exist", name),
			)
		}
	}
	fset, files, info, err := check(root, sources)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		from := fset.Position(file.Package).Filename
		if !slices.Contains(stateless, from) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			used := info.Uses[id]
			if used == nil || used.Pkg() == nil || used.Pkg().Path() != "engine" || isLocal(used) {
				return true
			}
			at, to := fset.Position(id.Pos()), fset.Position(used.Pos()).Filename
			if !slices.Contains(stateless, to) {
				problems = append(
					problems, fmt.Sprintf("%s:%d: refers to %s of %s, which is not stateless", from, at.Line, id.Name, to),
				)
			}
			return true
		})
	}
	return problems, nil
}

// isLocal reports whether an object is declared within a function.
func isLocal(o types.Object) bool {
	if v, ok := o.(*types.Var); ok && v.IsField() {
		return false
	}
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		return false
	}
	return o.Parent() != o.Pkg().Scope()
}
