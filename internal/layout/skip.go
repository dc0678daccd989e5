package layout

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
)

// skipRoom is the only package that may skip a test. It does so when the test needs more than
// Go, and only where nothing asks for these tests.
const skipRoom = "internal/test/tools"

// skips refuses a test that skips itself: a suite in which tests can leave themselves out passes
// when nothing ran. A test that takes long may leave itself out of a short run; the suite
// simulation runs its long form.
func (t *tree) skips(name string, fset *token.FileSet, file *ast.File) {
	if path.Dir(name) == skipRoom {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.IfStmt); ok && isShort(c.Cond) {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
			t.refuse(
				fmt.Sprintf("%s:%d", name, fset.Position(n.Pos()).Line), "skips a test: call tools.Need of %s, which says when",
				skipRoom,
			)
		}
		return true
	})
}

func isShort(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && isSelector(call.Fun, "testing", "Short")
}
