package shard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"testing"

	"github.com/interlockdev/interlock/engine"
)

// headOf names every command of the engine, so that a new one cannot be forgotten.
func TestEveryCommandIsKnown(t *testing.T) {
	parse := func(path string) *ast.File {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	commands := map[string]bool{}
	inspect := func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range st.Fields.List {
				if id, ok := f.Type.(*ast.Ident); ok && id.Name == "Head" && len(f.Names) == 0 {
					commands[spec.Name.Name] = true
				}
			}
		}
		return true
	}
	ast.Inspect(parse("../engine/command.go"), inspect)
	ast.Inspect(parse("../engine/command_task.go"), inspect)
	known := map[string]bool{}
	ast.Inspect(parse("command.go"), func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok {
			for _, e := range c.List {
				if star, ok := e.(*ast.StarExpr); ok {
					if sel, ok := star.X.(*ast.SelectorExpr); ok {
						known[sel.Sel.Name] = true
					}
				}
			}
		}
		return true
	})
	if len(commands) == 0 || !maps.Equal(commands, known) {
		t.Errorf("package engine has %v, headOf knows %v",
			slices.Sorted(maps.Keys(commands)), slices.Sorted(maps.Keys(known)))
	}
}

func TestMistakesOfTheCallerPanic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		for name, f := range map[string]func(){
			"no Receiver": func() { r.shard.Submit(&engine.Renew{Head: engine.Head{From: "me"}}) },
			"no answer":   func() { r.shard.Do(r.Context(), &engine.Detach{}) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", name)
					}
				}()
				f()
			}()
		}
	})
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]Config{
		"no journal": {}, "negative": {MaxWaiting: -1},
	} {
		if _, err := Open(t.Context(), c); err == nil {
			t.Errorf("%s: Open went through", name)
		}
	}
}
