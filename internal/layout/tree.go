package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// MaxLines is how long a hand-written file of code may be. A file is one topic. A page has no limit: one that lists all
// codes or all endpoints grows with them, and readers search in it.
const MaxLines = 800

// Tree checks what every package, file and page must have.
func Tree(root string) (problems []string, err error) {
	t := &tree{root: root, documented: map[string]bool{}, tests: map[string]bool{}}
	if err := walk(root, t.file); err != nil {
		return nil, err
	}
	for _, c := range t.cited {
		if !t.tests[c.test] {
			t.refuse(c.page, "names %s, which does not exist", c.test)
		}
	}
	for _, folder := range sortedKeys(t.documented) {
		if !t.documented[folder] {
			t.refuse(folder, "has no doc.go that says what the package does, what it must never do and where to start reading")
		}
	}
	return t.problems, nil
}

type tree struct {
	root       string
	documented map[string]bool // by folder with Go files that are not tests
	tests      map[string]bool // names of tests and fuzz targets
	cited      []citation
	problems   []string
}

// citation is a test's name on a page.
type citation struct{ page, test string }

func (t *tree) refuse(name, format string, args ...any) {
	t.problems = append(t.problems, name+": "+fmt.Sprintf(format, args...))
}

func (t *tree) file(name string) error {
	switch path.Ext(name) {
	case ".go", ".md", ".sh", ".bash", ".proto":
	default:
		return nil
	}
	text, err := os.ReadFile(filepath.Join(t.root, name))
	if err != nil {
		return err
	}
	if path.Ext(name) == ".go" && generated.Match(text) {
		return nil
	}
	if n := bytes.Count(text, []byte("\n")); n > MaxLines && path.Ext(name) != ".md" {
		t.refuse(name, "has %d lines, more than %d: split it by topic", n, MaxLines)
	}
	switch {
	case path.Ext(name) == ".md":
		return t.page(name, text)
	case path.Ext(name) == ".go":
		return t.goFile(name, text)
	}
	return nil
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func (t *tree) goFile(name string, text []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if word := unfinished.FindString(c.Text); word != "" {
				t.refuse(fmt.Sprintf("%s:%d", name, fset.Position(c.Pos()).Line), "says %s: finish it or open an issue", word)
			}
		}
	}
	t.skips(name, fset, file)
	if strings.HasSuffix(name, "_test.go") {
		t.testFile(name, fset, file)
		return nil
	}
	folder := path.Dir(name)
	if path.Base(name) == "doc.go" && file.Doc != nil {
		t.documented[folder] = true
	} else if !t.documented[folder] {
		t.documented[folder] = false
	}
	return nil
}

// The words are put together so that this file may be checked too.
var unfinished = regexp.MustCompile(`\b(` + "TO" + `DO|` + "FIX" + `ME|` + "XX" + `X)\b`)

// testFile notes the tests' names and refuses sleeping: a test that sleeps is slow
// on a fast machine and wrong on a slow one. In the bubble of testing/synctest
// sleeping is how time passes, so there it is right.
func (t *tree) testFile(name string, fset *token.FileSet, file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
			t.tests[f.Name.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "synctest", "Test") {
			return false
		}
		if e, ok := n.(ast.Expr); ok && isSelector(e, "time", "Sleep") {
			t.refuse(
				fmt.Sprintf("%s:%d", name, fset.Position(n.Pos()).Line), "sleeps: wait for the event, or use testing/synctest",
			)
		}
		return true
	})
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```$")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	makeWord = regexp.MustCompile("(?m)^`?\\s*make ([a-z][a-z0-9-]*)")
	// scriptName is a script as docs/guarantees.md names it: its folder, its name.
	scriptName = regexp.MustCompile("^`([a-z]+/[a-z]+(?:_[a-z]+)*)`$")
	testName   = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)
	target     = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):.*## `)
	suites     = regexp.MustCompile(`(?m)^SUITES := (.*)$`)
)

// page checks that a page's links lead somewhere, and that the make targets and
// the tests that it names exist.
func (t *tree) page(name string, text []byte) error {
	prose := fence.ReplaceAll(text, nil)
	for _, m := range link.FindAllSubmatch(prose, -1) {
		u, err := url.Parse(string(m[1]))
		if err != nil {
			t.refuse(name, "cannot read the link %s", m[1])
			continue
		}
		if u.Scheme != "" || u.Path == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(t.root, path.Dir(name), u.Path)); err != nil {
			t.refuse(name, "links to %s, which does not exist", u.Path)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(t.root, "Makefile"))
	if err != nil {
		return err
	}
	targets := map[string]bool{}
	for _, m := range target.FindAllSubmatch(makefile, -1) {
		targets[string(m[1])] = true
	}
	if m := suites.FindSubmatch(makefile); m != nil {
		for _, name := range strings.Fields(string(m[1])) {
			targets[name] = true
		}
	}
	for _, code := range examples(text) {
		for _, test := range testName.FindAllString(code, -1) {
			t.cited = append(t.cited, citation{name, test})
		}
		if m := scriptName.FindStringSubmatch(code); m != nil {
			script := "engine/testdata/" + m[1] + ".txt"
			_, noFolder := os.Stat(filepath.Join(t.root, path.Dir(script)))
			_, noScript := os.Stat(filepath.Join(t.root, script))
			if noFolder == nil && noScript != nil {
				t.refuse(name, "names the script %s, which does not exist", script)
			}
		}
		for _, m := range makeWord.FindAllStringSubmatch(code, -1) {
			if !targets[m[1]] {
				t.refuse(name, "says make %s, which the Makefile does not have", m[1])
			}
		}
	}
	return nil
}

var inline = regexp.MustCompile("`[^`\n]+`")

// examples are the parts of a page that are set as code.
func examples(text []byte) (list []string) {
	for _, b := range fence.FindAll(text, -1) {
		list = append(list, string(b))
	}
	for _, b := range inline.FindAll(fence.ReplaceAll(text, nil), -1) {
		list = append(list, string(b))
	}
	return list
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
