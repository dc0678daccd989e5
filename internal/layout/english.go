package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sentence finds text of three words or more.
var sentence = regexp.MustCompile(`[a-z]{2,}[^a-zA-Z]* [^a-zA-Z]*[a-z]{2,}[^a-zA-Z]* [^a-zA-Z]*[a-z]{2,}`)

// English returns the sentences in the engine. It speaks in messages, which package prose puts into
// words; only errors of journals, panics, and the names of texts that callers wrote are in words.
func English(root string) ([]string, error) {
	packages, err := engineSources(root)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, sources := range packages {
		found, err := checkEnglish(sources)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	slices.Sort(problems)
	return problems, nil
}

func checkEnglish(sources map[string]string) (problems []string, err error) {
	for name, source := range sources {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, source, 0)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				return !isFailure(n.Fun)
			case *ast.CompositeLit:
				sel, ok := n.Type.(*ast.SelectorExpr)
				return !ok || sel.Sel.Name != "Text"
			case *ast.BasicLit:
				if text, _ := strconv.Unquote(n.Value); n.Kind == token.STRING && sentence.MatchString(text) {
					problems = append(
						problems, fmt.Sprintf("%s: says %q: make it a message of engine/message", fset.Position(n.Pos()), text),
					)
				}
			}
			return true
		})
	}
	return problems, nil
}

// isFailure reports whether a function panics or makes an error of a journal.
func isFailure(fun ast.Expr) bool {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		return ok && slices.Contains([]string{"fmt.Errorf", "errors.New"}, strings.Join([]string{x.Name, f.Sel.Name}, "."))
	}
	return false
}
