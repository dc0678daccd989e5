package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// declaration is a type declaration with its comment.
type declaration struct {
	name, file string
	line       int
	doc        string
	alias      bool
	directives []directive
}

// directive is a line //schema:NAME VALUE of a comment.
type directive struct{ name, value string }

// declarations returns the type declarations of a package, in the order of its files.
func declarations(root, folder string) (list []declaration, err error) {
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			for _, spec := range d.Specs {
				spec := spec.(*ast.TypeSpec)
				doc := spec.Doc
				if doc == nil {
					doc = d.Doc
				}
				x := declaration{
					name: spec.Name.Name, file: filepath.Base(name), line: fset.Position(spec.Pos()).Line,
					alias: spec.Assign.IsValid(),
				}
				x.doc, x.directives = describe(spec.Name.Name, doc)
				list = append(list, x)
			}
		}
	}
	slices.SortStableFunc(list, compareDeclarations)
	return list, nil
}

// subject is how a doc comment begins: "Decimal is a counter" describes a counter.
var subject = regexp.MustCompile(`^(\w+) (?:is|are) `)

// describe returns the description in a doc comment, without the name of the declared type, and
// its directives.
func describe(name string, doc *ast.CommentGroup) (text string, directives []directive) {
	if doc == nil {
		return "", nil
	}
	for _, c := range doc.List {
		if line, ok := strings.CutPrefix(c.Text, "//schema:"); ok {
			key, value, _ := strings.Cut(line, " ")
			directives = append(directives, directive{key, strings.TrimSpace(value)})
		}
	}
	text = sentence(doc.Text())
	if m := subject.FindStringSubmatch(text); m != nil && m[1] == name {
		text = text[len(m[0]):]
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text, directives
}

// sentence joins the lines of a comment.
func sentence(doc string) string { return strings.Join(strings.Fields(doc), " ") }
