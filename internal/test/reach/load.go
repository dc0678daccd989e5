package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// variant is a package as go list describes it. A package with tests is there several times: "p" for its users,
// "p [p.test]" with its internal tests, "p_test [p.test]", its external tests, and "q [p.test]", a package q that
// imports p and is imported by a test of p.
type variant struct {
	ImportPath, Dir, Name, ForTest string
	GoFiles                        []string
	Imports                        []string
	ImportMap                      map[string]string
	Module                         *struct{ Main bool }
	Error                          *struct{ Pos, Err string }

	local bool
	dir   string // relative to the root
	files []*source
	types *types.Package
}

func (p *variant) resolve(imported string) string {
	if to, ok := p.ImportMap[imported]; ok {
		return to
	}
	return imported
}

// base is the import path without its variant.
func (p *variant) base() string {
	base, _, _ := strings.Cut(p.ImportPath, " ")
	return base
}

// tests returns the package that this one has the tests of, or "".
func (p *variant) tests() string {
	if p.ForTest != "" && (p.base() == p.ForTest || p.base() == p.ForTest+"_test") {
		return p.ForTest
	}
	return ""
}

// module is the main module at root.
type module struct {
	root    string
	path    string
	goes    string // its version of Go
	list    []*variant
	byPath  map[string]*variant
	sources []*source
	fset    *token.FileSet
	gc      types.Importer
	exports map[string]string
	direct  []string // packages of other modules that this one imports
}

// goList runs go list and hands each package on.
func goList(root string, each func(*variant), args ...string) error {
	const fields = "-json=ImportPath,Dir,Name,ForTest,GoFiles,Imports,ImportMap,Module,Error"
	cmd := exec.Command("go", append([]string{"list", "-e", fields}, args...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(variant)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		each(p)
	}
}

// load lists and parses the module at root.
func load(root string) (*module, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.GoVersion}}")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	m := &module{root: root, byPath: map[string]*variant{}, fset: token.NewFileSet()}
	m.path, m.goes, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	parsed := map[string]*source{}
	imported := map[string]bool{}
	err = goList(root, func(p *variant) {
		p.local = p.Module != nil && p.Module.Main && !strings.HasSuffix(p.ImportPath, ".test")
		m.list = append(m.list, p)
		m.byPath[p.ImportPath] = p
		if !p.local {
			return
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil || p.Dir == "" {
			return
		}
		p.dir = filepath.ToSlash(dir)
		for _, name := range p.GoFiles {
			name = path.Join(p.dir, name)
			if parsed[name] == nil {
				f, _ := parseFile(m.fset, root, name) // the type check reports what is wrong
				if f == nil {
					continue
				}
				parsed[name] = f
				m.sources = append(m.sources, f)
			}
			p.files = append(p.files, parsed[name])
		}
		for _, i := range p.Imports {
			imported[i] = true
		}
	}, "-test", "-deps", "./...")
	if err != nil {
		return nil, err
	}
	for i := range imported {
		if p := m.byPath[i]; p != nil && !p.local && i != "C" && i != "unsafe" {
			m.direct = append(m.direct, i)
		}
	}
	slices.Sort(m.direct)
	return m, nil
}

// foreign returns the packages of other modules that were loaded.
func (m *module) foreign() (list []*types.Package) {
	seen := map[*types.Package]bool{}
	var visit func(p *types.Package)
	visit = func(p *types.Package) {
		if seen[p] {
			return
		}
		seen[p] = true
		list = append(list, p)
		for _, i := range p.Imports() {
			visit(i)
		}
	}
	for _, i := range m.direct {
		if p, err := m.gc.Import(i); err == nil {
			visit(p)
		}
	}
	return list
}

// openExports makes the importer of other modules' packages.
func (m *module) openExports() error {
	m.exports = map[string]string{}
	if len(m.direct) > 0 {
		args := append([]string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "--"}, m.direct...)
		cmd := exec.Command("go", args...)
		cmd.Dir = m.root
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("go list -export: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			p, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
			m.exports[p] = file
		}
	}
	m.gc = importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) {
		if m.exports[path] == "" {
			return nil, fmt.Errorf("no package %s", path)
		}
		return os.Open(m.exports[path])
	})
	return nil
}

type importerOf struct {
	m *module
	p *variant
}

func (i importerOf) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if q := i.m.byPath[i.p.resolve(path)]; q != nil && q.local {
		if q.types == nil {
			return nil, fmt.Errorf("no package %s", path)
		}
		return q.types, nil
	}
	return i.m.gc.Import(path)
}

// check type-checks all packages, with the bodies of functions where whole is true, hands the result on, and returns
// what does not compile, by import path.
func (m *module) check(whole func(*variant) bool, each func(*variant, *types.Info)) (map[string][]string, error) {
	if err := m.openExports(); err != nil {
		return nil, err
	}
	faults := map[string][]string{}
	seen := map[string]bool{}
	fault := func(p *variant, text string) {
		text = strings.TrimPrefix(text, m.root+string(filepath.Separator))
		if !seen[text] {
			seen[text] = true
			faults[p.base()] = append(faults[p.base()], text)
		}
	}
	for _, p := range m.list {
		if !p.local {
			continue
		}
		if p.Error != nil {
			fault(p, strings.TrimSpace(p.Error.Pos+" "+p.Error.Err))
		}
		if len(p.files) == 0 {
			continue
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		config := types.Config{
			Importer: importerOf{m, p}, GoVersion: "go" + m.goes, Sizes: types.SizesFor("gc", runtime.GOARCH),
			IgnoreFuncBodies: !whole(p),
			Error:            func(err error) { fault(p, err.Error()) },
		}
		files := make([]*ast.File, len(p.files))
		for i, f := range p.files {
			files[i] = f.syntax
		}
		p.types, _ = config.Check(p.base(), m.fset, files, info)
		if !config.IgnoreFuncBodies {
			each(p, info)
		}
	}
	return faults, nil
}

// users returns the packages that import one of the given ones, by any number of steps, with their distance. It
// counts a package that builds or names a command as one that imports it.
func (m *module) users(g *graph, from map[string]bool) map[string]int {
	back := map[string][]string{}
	for _, p := range m.list {
		if !p.local {
			continue
		}
		for _, i := range p.Imports {
			back[i] = append(back[i], p.ImportPath)
		}
		// The tests of a package are tests of its other variants, too.
		if t := p.tests(); t != "" {
			back[t] = append(back[t], p.ImportPath)
		}
	}
	byDir := map[string][]string{}
	for _, p := range m.list {
		if p.local {
			byDir[p.dir] = append(byDir[p.dir], p.ImportPath)
		}
	}
	for _, n := range g.nodes {
		for _, text := range n.texts {
			for _, dir := range m.named(n.dir, text) {
				for _, p := range byDir[dir] {
					back[p] = append(back[p], byDir[n.dir]...)
				}
			}
		}
	}
	distance := map[string]int{}
	var queue []string
	for _, p := range slices.Sorted(maps.Keys(from)) {
		distance[p] = 0
		queue = append(queue, p)
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, user := range back[p] {
			if _, ok := distance[user]; !ok {
				distance[user] = distance[p] + 1
				queue = append(queue, user)
			}
		}
	}
	return distance
}

// named returns the folder of the command that a text in a package at dir names, as an import path or as a path.
func (m *module) named(dir, text string) []string {
	if !strings.Contains(text, "/") || strings.ContainsAny(text, " \n") {
		return nil
	}
	var candidates []string
	if rest, ok := strings.CutPrefix(text, m.path+"/"); ok {
		candidates = []string{rest}
	} else {
		candidates = []string{path.Clean(text), path.Join(dir, text)}
	}
	var found []string
	for _, c := range candidates {
		if p := m.byPath[m.path+"/"+c]; p != nil && p.local && p.Name == "main" && c != dir {
			found = append(found, c)
		}
	}
	return found
}
