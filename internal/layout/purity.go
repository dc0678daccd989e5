package layout

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The engine must give the same events for the same commands on every machine,
// for ever. The checks below refuse what could make two runs differ: clocks,
// randomness, concurrency, I/O, floats, maps walked in their own order, and state
// outside of the engine's value.

// pureImports are the packages the engine may import, with the names it may use
// of each; nil means all of them.
var pureImports = map[string][]string{
	Module:                           nil,
	"golang.org/x/text/unicode/norm": nil,

	"github.com/interlockdev/interlock/internal/invisible": nil,

	"bufio":           nil,
	"bytes":           nil,
	"cmp":             nil,
	"container/heap":  nil,
	"crypto/sha256":   nil,
	"encoding/binary": nil,
	"encoding/hex":    nil,
	"errors":          nil,
	"hash":            nil,
	"hash/crc32":      nil,
	"hash/fnv":        nil,
	"iter":            nil,
	"math":            nil, // for its integer limits; what computes is a float and is refused as such
	"math/bits":       nil,
	"slices":          nil,
	"sort":            nil,
	"strconv":         nil,
	"strings":         nil,
	"unicode":         nil,
	"unicode/utf8":    nil,

	"encoding/json": {"Compact", "Unmarshal", "Valid"}, // Unmarshal for strings: of a number in an any it makes a float

	"fmt": {
		"Append", "Appendf", "Appendln", "Errorf", "Fprint", "Fprintf", "Fprintln", "Sprint", "Sprintf", "Sprintln",
		"Stringer",
	},
	"io": {
		"ByteReader", "ByteWriter", "EOF", "ErrUnexpectedEOF", "ReadAll", "ReadFull", "Reader", "StringWriter",
		"WriteString", "Writer",
	},
	"maps": {"Clone", "Copy", "DeleteFunc", "Equal", "EqualFunc", "Keys", "Values"},
	"time": {"Duration", "Hour", "Microsecond", "Millisecond", "Minute", "Nanosecond", "Second"},
}

// Purity checks the files of one type-checked package and returns what it may not
// do, in the order of the source.
func Purity(fset *token.FileSet, files []*ast.File, info *types.Info) []string {
	c := &purity{fset: fset, info: info, sorted: map[ast.Node]bool{}}
	for _, file := range files {
		for _, spec := range file.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err != nil || !pureImport(name) {
				c.refuse(spec, "imports %s", spec.Path.Value)
			}
		}
		for _, decl := range file.Decls {
			c.reasoned = false
			if f, ok := decl.(*ast.FuncDecl); ok && f.Doc != nil {
				c.reasoned = anyOrder.MatchString(f.Doc.Text())
			}
			ast.Inspect(decl, c.visit)
		}
	}
	return c.problems
}

// anyOrder is the form in which a function's comment claims an exception from the rule about
// maps: it states that the order does not matter, and why. A selection of the smallest few of a
// million entries, for one, would cost far more sorted.
var anyOrder = regexp.MustCompile(`does\s+not\s+depend\s+on\s+the\s+order\s+of\s+the\s+map,\s+because\s+\w`)

// pureImport reports whether the engine may import a package. Engine checks the packages below
// the engine's folder, too, so they may.
func pureImport(name string) bool {
	_, ok := pureImports[name]
	return ok || strings.HasPrefix(name, Module+"/engine/")
}

type purity struct {
	fset     *token.FileSet
	info     *types.Info
	problems []string
	// sorted marks the calls of maps.Keys and maps.Values with an order that is lost before any
	// use: those directly in slices.Sorted, and those that are collected by a statement before
	// one that sorts.
	sorted map[ast.Node]bool
	// reasoned means that the comment of the function being visited has a reason why it may
	// walk a map.
	reasoned bool
	// floats is the end of the last expression refused for its type, so that 2*1.5
	// is reported once and not three times.
	floats token.Pos
}

func (c *purity) refuse(at ast.Node, format string, args ...any) {
	pos := c.fset.Position(at.Pos())
	c.problems = append(c.problems, fmt.Sprintf("%s:%d: ", pos.Filename, pos.Line)+fmt.Sprintf(format, args...))
}

func (c *purity) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.refuse(n, "starts a goroutine")
	case *ast.SelectStmt:
		c.refuse(n, "selects")
	case *ast.SendStmt:
		c.refuse(n, "sends on a channel")
	case *ast.ChanType:
		c.refuse(n, "has a channel")
	case *ast.RangeStmt:
		if c.overMap(n.X) && !c.reasoned {
			c.refuse(n, "walks a map in its own order: walk slices.Sorted(maps.Keys(m))")
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, left := range n.Lhs {
				c.global(left)
			}
		}
	case *ast.IncDecStmt:
		c.global(n.X)
	case *ast.BlockStmt:
		c.block(n)
	case *ast.CallExpr:
		c.call(n)
	case *ast.SelectorExpr:
		c.selector(n)
	}
	if e, ok := n.(ast.Expr); ok {
		c.float(e)
	}
	return true
}

// overMap reports whether x is a map, or of a type parameter that may be one.
func (c *purity) overMap(x ast.Expr) bool {
	t := c.info.TypeOf(x)
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		for embedded := range p.Constraint().Underlying().(*types.Interface).EmbeddedTypes() {
			union, ok := embedded.(*types.Union)
			if !ok {
				union = types.NewUnion([]*types.Term{types.NewTerm(false, embedded)})
			}
			for term := range union.Terms() {
				if _, ok := term.Type().Underlying().(*types.Map); ok {
					return true
				}
			}
		}
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// call remembers slices.Sorted(maps.Keys(m)) before the inner call is visited,
// and refuses to print.
func (c *purity) call(call *ast.CallExpr) {
	if id, ok := call.Fun.(*ast.Ident); ok {
		if b, ok := c.info.Uses[id].(*types.Builtin); ok && (b.Name() == "print" || b.Name() == "println") {
			c.refuse(call, "prints")
		}
	}
	path, name := c.imported(call.Fun)
	switch {
	case path == "slices" && slices.Contains([]string{"Sorted", "SortedFunc", "SortedStableFunc"}, name) &&
		len(call.Args) > 0:
		if inner, ok := call.Args[0].(*ast.CallExpr); ok {
			c.sorted[inner.Fun] = true
		}
	case path == "maps" && name == "DeleteFunc" && len(call.Args) == 2 && !isExpression(call.Args[1]):
		c.refuse(
			call, "deletes from a map by more than one expression, so the order may show: write func(...) bool { return ... }",
		)
	}
}

// isExpression reports whether f is a function literal that only returns.
func isExpression(f ast.Expr) bool {
	lit, ok := f.(*ast.FuncLit)
	if !ok || len(lit.Body.List) != 1 {
		return false
	}
	_, ok = lit.Body.List[0].(*ast.ReturnStmt)
	return ok
}

// block remembers what is collected from a map by one statement and sorted by the
// next.
func (c *purity) block(b *ast.BlockStmt) {
	for i := 0; i+1 < len(b.List); i++ {
		assign, ok := b.List[i].(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 {
			continue
		}
		list, ok := assign.Lhs[0].(*ast.Ident)
		if !ok || !c.sorts(b.List[i+1], list) {
			continue
		}
		ast.Inspect(assign.Rhs[0], func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 {
				if path, name := c.imported(call.Fun); path == "slices" && name == "Collect" {
					if inner, ok := call.Args[0].(*ast.CallExpr); ok {
						c.sorted[inner.Fun] = true
					}
				}
			}
			return true
		})
	}
}

// sorts reports whether a statement is a sort of list and nothing else.
func (c *purity) sorts(s ast.Stmt, list *ast.Ident) bool {
	expr, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := expr.X.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	path, name := c.imported(call.Fun)
	id, ok := call.Args[0].(*ast.Ident)
	return ok && path == "slices" && slices.Contains([]string{"Sort", "SortFunc", "SortStableFunc"}, name) &&
		c.info.ObjectOf(id) != nil && c.info.ObjectOf(id) == c.info.ObjectOf(list)
}

func (c *purity) selector(sel *ast.SelectorExpr) {
	path, name := c.imported(sel)
	switch {
	case path == "":
	case path == "maps" && (name == "Keys" || name == "Values"):
		if !c.sorted[sel] && !c.reasoned {
			c.refuse(sel, "walks a map in its own order: sort it at once, slices.Sorted(maps.%s(m))", name)
		}
	case pureImports[path] != nil && !slices.Contains(pureImports[path], name):
		c.refuse(sel, "uses %s.%s", path, name)
	}
}

// imported resolves pkg.Name, also behind an instantiation; the path is "" for
// anything else.
func (c *purity) imported(e ast.Expr) (path, name string) {
	switch x := e.(type) {
	case *ast.IndexExpr:
		e = x.X
	case *ast.IndexListExpr:
		e = x.X
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	pkg, ok := c.info.Uses[id].(*types.PkgName)
	if !ok {
		return "", ""
	}
	return pkg.Imported().Path(), sel.Sel.Name
}

// float refuses every expression and type that is a float or a complex number.
func (c *purity) float(e ast.Expr) {
	if e.Pos() < c.floats {
		return
	}
	tv, ok := c.info.Types[e]
	if !ok || tv.Type == nil {
		return
	}
	if basic, ok := tv.Type.Underlying().(*types.Basic); ok && basic.Info()&(types.IsFloat|types.IsComplex) != 0 {
		c.floats = e.End()
		c.refuse(e, "uses the type %s", tv.Type)
	}
}

// global refuses assignments to variables of the package, and to what is in them.
func (c *purity) global(e ast.Expr) {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			if v, ok := c.info.Uses[x].(*types.Var); ok && !v.IsField() && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
				c.refuse(x, "changes the package's variable %s", x.Name)
			}
			return
		default:
			return
		}
	}
}
