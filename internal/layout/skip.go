package layout

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// skipRoom is the only package that may skip a test. It does so when the test needs more than
// Go, and only where nothing asks for these tests.
const skipRoom = "internal/test/tools"

// skips refuses a test that skips itself: a suite in which tests can leave themselves out passes
// when nothing ran. A test that takes long may leave itself out of a short run; the Makefile
// runs its long form.
func (t *tree) skips(name string, fset *token.FileSet, file *ast.File) {
	if path.Dir(name) == skipRoom {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.IfStmt); ok && isShort(c.Cond) {
			t.short[path.Dir(name)] = true
			return false
		}
		if e, ok := n.(ast.Expr); ok && isShort(e) {
			t.short[path.Dir(name)] = true
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

var longPackages = regexp.MustCompile(`(?m)^LONG\s*:=(.*)$`)

// longForms checks that the Makefile runs the long form of every package that has a short one.
func (t *tree) longForms() error {
	if len(t.short) == 0 {
		return nil
	}
	makefile, err := os.ReadFile(filepath.Join(t.root, "Makefile"))
	if err != nil {
		return err
	}
	var long []string
	if m := longPackages.FindSubmatch(makefile); m != nil {
		long = strings.Fields(string(m[1]))
	}
	for _, folder := range sortedKeys(t.short) {
		if !slices.ContainsFunc(long, func(pattern string) bool {
			top, below := strings.CutSuffix(strings.TrimPrefix(pattern, "./"), "/...")
			return folder == top || below && within(folder, top)
		}) {
			t.refuse(
				folder, "has tests with a short form, and LONG in the Makefile does not name it: their long form never runs",
			)
		}
	}
	return nil
}
