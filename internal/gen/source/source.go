package source

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tree is the source of a module. It loads a package once, so the same type is the same
// *types.Named in all that it returns.
type Tree struct {
	Root   string // the folder of go.mod
	Module string // the module's path

	changed  map[string]string // texts of files that differ from those on disk, by name below Root
	fset     *token.FileSet
	packages map[string]*Package // by folder
	exports  map[string]string   // of other modules and the standard library: their export data, by path
	external types.Importer
}

// Open returns the module with its go.mod in root.
func Open(root string) (*Tree, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	m := regexp.MustCompile(`(?m)^module\s+(\S+)`).FindSubmatch(mod)
	if m == nil {
		return nil, errors.New("go.mod names no module")
	}
	t := &Tree{
		Root: root, Module: string(m[1]), fset: token.NewFileSet(), packages: map[string]*Package{},
		exports: map[string]string{},
	}
	t.external = importer.ForCompiler(t.fset, "gc", func(path string) (io.ReadCloser, error) {
		if t.exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(t.exports[path])
	})
	return t, nil
}

// With returns the same module with other texts for some files, by their names below the root.
// It shares what t knows of other modules.
func (t *Tree) With(changed map[string]string) *Tree {
	other := *t
	other.changed, other.packages = changed, map[string]*Package{}
	return &other
}

// Read returns the text of a file, by its slash-separated name below the root.
func (t *Tree) Read(name string) ([]byte, error) {
	if text, ok := t.changed[name]; ok {
		return []byte(text), nil
	}
	return os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(name)))
}

// File returns the name of the file that declares a struct, below the root.
func (t *Tree) File(s *Struct) string { return t.fset.Position(s.Type.Obj().Pos()).Filename }

// Package is one package of the module, without its function bodies and its generated files.
type Package struct {
	Folder string // below the root; "." for the package of the root
	Path   string // of the import
	Name   string
	Types  *types.Package

	structs   []*Struct
	constants map[string][]Constant // by the name of their type
}

// Struct is a struct type that is declared at the top of a package.
type Struct struct {
	Package *Package
	Name    string
	Doc     string
	Type    *types.Named
	Fields  []Field // as declared; an embedded struct is one field
}

// Field is one field of a struct.
type Field struct {
	Name     string
	Doc      string // the comment above it, or else the one at the end of its line
	Tag      reflect.StructTag
	Type     types.Type
	Embedded bool
}

// Constant is a constant of a named type with an integer or string as its underlying type.
type Constant struct {
	Name  string
	Doc   string
	Value constant.Value
}

// Structs are the struct types of the package, in the order of its files and their lines.
func (p *Package) Structs() []*Struct { return p.structs }

// Struct is the struct type with a name, or nil.
func (p *Package) Struct(name string) *Struct {
	for _, s := range p.structs {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Constants are those of a named type of this package, in the order of the source.
func (p *Package) Constants(typeName string) []Constant { return p.constants[typeName] }

// Field is the field with a name, or nil.
func (s *Struct) Field(name string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// Struct returns the declaration of t, if t is a struct type of this module.
func (t *Tree) Struct(typ types.Type) (*Struct, error) {
	named, ok := types.Unalias(typ).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return nil, fmt.Errorf("%s is no struct of this module", typ)
	}
	folder, ok := t.folder(named.Obj().Pkg().Path())
	if !ok {
		return nil, fmt.Errorf("%s is no struct of this module", typ)
	}
	p, err := t.Package(folder)
	if err != nil {
		return nil, err
	}
	s := p.Struct(named.Obj().Name())
	if s == nil {
		return nil, fmt.Errorf("%s is no struct of this module", typ)
	}
	return s, nil
}

// Constants returns the constants of a named type of this module.
func (t *Tree) Constants(named *types.Named) ([]Constant, error) {
	if named.Obj().Pkg() != nil {
		if folder, ok := t.folder(named.Obj().Pkg().Path()); ok {
			p, err := t.Package(folder)
			if err != nil {
				return nil, err
			}
			return p.Constants(named.Obj().Name()), nil
		}
	}
	return nil, fmt.Errorf("%s is no type of this module", named)
}

// folder is where the package with an import path is.
func (t *Tree) folder(importPath string) (string, bool) {
	if importPath == t.Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.Module+"/")
}

// Package loads the package in a folder, which is slash-separated and below the root.
func (t *Tree) Package(folder string) (*Package, error) {
	folder = path.Clean(folder)
	if p := t.packages[folder]; p != nil {
		return p, nil
	}
	files, err := t.parse(folder)
	if err != nil {
		return nil, err
	}
	if err := t.findExports(files); err != nil {
		return nil, err
	}
	p := &Package{
		Folder: folder, Path: path.Join(t.Module, folder), Name: files[0].Name.Name, constants: map[string][]Constant{},
	}
	// A declaration may refer to a generated type, which is not resolved here. An emitter that
	// meets an invalid type reports it.
	config := types.Config{IgnoreFuncBodies: true, Importer: importFunc(t.load), Error: func(error) {}}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	p.Types, _ = config.Check(p.Path, t.fset, files, info)
	for _, file := range files {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				p.declare(d, info)
			}
		}
	}
	t.packages[folder] = p
	return p, nil
}

type importFunc func(path string) (*types.Package, error)

func (f importFunc) Import(path string) (*types.Package, error) { return f(path) }

func (t *Tree) load(importPath string) (*types.Package, error) {
	folder, ours := t.folder(importPath)
	if !ours {
		return t.external.Import(importPath)
	}
	p, err := t.Package(folder)
	if err != nil {
		return nil, err
	}
	return p.Types, nil
}

// parse reads the files of a package that this machine would compile, without tests and
// without what was generated.
func (t *Tree) parse(folder string) (files []*ast.File, err error) {
	dir := filepath.Join(t.Root, filepath.FromSlash(folder))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if match, err := build.Default.MatchFile(dir, name); err != nil || !match {
			if err != nil {
				return nil, err
			}
			continue
		}
		text, err := t.Read(path.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if written.Match(text) {
			continue
		}
		file, err := parser.ParseFile(t.fset, path.Join(folder, name), text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no Go files in %s", folder)
	}
	return files, nil
}

// findExports asks the go command for the export data of the packages of other modules that
// files import.
func (t *Tree) findExports(files []*ast.File) error {
	var missing []string
	for _, file := range files {
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if _, ours := t.folder(imported); !ours && t.exports[imported] == "" && !slices.Contains(missing, imported) &&
				imported != "unsafe" {
				missing = append(missing, imported)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	cmd := exec.Command(
		"go", append([]string{"list", "-export", "-f", "{{.ImportPath}}\t{{.Export}}", "--"}, missing...)...,
	)
	cmd.Dir = t.Root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	for line := range strings.Lines(string(out)) {
		imported, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		t.exports[imported] = file
	}
	return nil
}

func (p *Package) declare(d *ast.GenDecl, info *types.Info) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			body, isStruct := spec.Type.(*ast.StructType)
			if !isStruct || spec.Assign.IsValid() || info.Defs[spec.Name] == nil {
				continue
			}
			named, ok := info.Defs[spec.Name].Type().(*types.Named)
			if !ok {
				continue
			}
			s := &Struct{Package: p, Name: spec.Name.Name, Doc: comment(spec.Doc, d.Doc), Type: named}
			s.declare(body, named.Underlying().(*types.Struct))
			p.structs = append(p.structs, s)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				c, ok := info.Defs[name].(*types.Const)
				if !ok {
					continue
				}
				if named, ok := c.Type().(*types.Named); ok && named.Obj().Pkg() == p.Types {
					of := named.Obj().Name()
					p.constants[of] = append(p.constants[of], Constant{name.Name, comment(spec.Doc, spec.Comment), c.Val()})
				}
			}
		}
	}
}

func (s *Struct) declare(body *ast.StructType, typ *types.Struct) {
	n := 0
	for _, field := range body.Fields.List {
		for range max(len(field.Names), 1) {
			v := typ.Field(n)
			s.Fields = append(s.Fields, Field{
				Name: v.Name(), Doc: comment(field.Doc, field.Comment), Tag: reflect.StructTag(typ.Tag(n)), Type: v.Type(),
				Embedded: v.Embedded(),
			})
			n++
		}
	}
}

// comment is the text of the first group that there is.
func comment(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g != nil {
			return strings.TrimSpace(g.Text())
		}
	}
	return ""
}

// written matches the files that the generator has written.
var written = regexp.MustCompile(`(?m)^// Code generated by internal/gen\b.* DO NOT EDIT\.$`)

// Generated returns the names of the files below root that the generator has written, sorted.
func Generated(root string) (names []string, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, "_gen.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil || !written.Match(text) {
			return err
		}
		below, err := filepath.Rel(root, name)
		names = append(names, filepath.ToSlash(below))
		return err
	})
	return names, err
}
