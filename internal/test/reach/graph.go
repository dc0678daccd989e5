package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// node is a package-level declaration, or the initialisation of a package.
type node struct {
	dir  string // of the package, relative to the root
	pkg  string // its name; that of an external test ends in _test
	name string // as in declaration; "init" also stands for the initialisation as a whole
	file string // relative to the root
	test bool   // a function that go test calls
	spec ast.Node
	tok  token.Token

	texts  []string // its texts
	embeds []string // the patterns of files that become its value
	users  []int    // the nodes that refer to it
}

// graph has the declarations of the module, and which refer to which.
type graph struct {
	m       *module
	nodes   []*node
	starts  []token.Pos // of the declarations that have a node, ascending
	ends    []token.Pos
	at      []int // their nodes
	byName  map[string][]int
	bySpec  map[ast.Node][]int
	inits   map[string]int // by folder and package name
	called  map[string]bool
	methods []int
}

// implicit are the methods of interfaces that the standard library writes inside of functions.
var implicit = []string{"Is", "As", "Unwrap", "Timeout", "Temporary"}

// inTemplate finds what a template calls.
var inTemplate = regexp.MustCompile(`\.([A-Z]\w*)`)

// newGraph makes the nodes of all files.
func newGraph(m *module) *graph {
	g := &graph{
		m: m, byName: map[string][]int{}, bySpec: map[ast.Node][]int{}, inits: map[string]int{}, called: map[string]bool{},
	}
	for _, name := range implicit {
		g.called[name] = true
	}
	type span struct {
		start, end token.Pos
		node       int
	}
	var all []span
	for _, f := range m.sources {
		templates := slices.ContainsFunc(f.syntax.Imports, func(s *ast.ImportSpec) bool {
			return s.Path.Value == `"html/template"` || s.Path.Value == `"text/template"`
		})
		g.initOf(f)
		for _, d := range declarations(f.syntax) {
			for _, name := range d.names {
				n := &node{dir: f.dir, pkg: f.syntax.Name.Name, name: name, file: f.name, spec: d.spec, tok: d.tok}
				n.test = strings.HasSuffix(f.name, "_test.go") && d.tok == token.FUNC && testName.MatchString(name)
				for _, doc := range d.docs {
					for _, c := range doc.List {
						if patterns, ok := strings.CutPrefix(c.Text, "//go:embed "); ok {
							n.embeds = append(n.embeds, strings.Fields(patterns)...)
						}
					}
				}
				g.inspect(n, templates)
				id := len(g.nodes)
				g.nodes = append(g.nodes, n)
				g.byName[lastName(name)] = append(g.byName[lastName(name)], id)
				g.bySpec[d.spec] = append(g.bySpec[d.spec], id)
				if strings.Contains(name, ".") {
					g.methods = append(g.methods, id)
				}
				start, end := d.spec.Pos(), d.spec.End()
				if len(d.names) > 1 { // each name is found by its own place, and the values by the first
					for _, id := range d.spec.(*ast.ValueSpec).Names {
						if id.Name == name {
							start, end = id.Pos(), id.End()
						}
					}
				}
				all = append(all, span{start, end, id})
			}
		}
	}
	slices.SortFunc(all, func(a, b span) int { return int(a.start - b.start) })
	for _, p := range all {
		g.starts, g.ends, g.at = append(g.starts, p.start), append(g.ends, p.end), append(g.at, p.node)
	}
	return g
}

// testName matches what go test runs without flags.
var testName = regexp.MustCompile(`^(Test|Example|Fuzz)([^a-z].*)?$`)

func lastName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// inspect notes the texts of a declaration, and the methods of interfaces in it.
func (g *graph) inspect(n *node, templates bool) {
	ast.Inspect(n.spec, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(x.Value); x.Kind == token.STRING && err == nil {
				n.texts = append(n.texts, text)
				if templates {
					for _, m := range inTemplate.FindAllStringSubmatch(text, -1) {
						g.called[m[1]] = true
					}
				}
			}
		case *ast.InterfaceType:
			for _, field := range x.Methods.List {
				for _, name := range field.Names {
					g.called[name.Name] = true
				}
			}
		}
		return true
	})
}

// initOf returns the node of the initialisation of a file's package.
func (g *graph) initOf(f *source) int {
	key := f.dir + " " + f.syntax.Name.Name
	id, ok := g.inits[key]
	if !ok {
		id = len(g.nodes)
		g.inits[key] = id
		g.nodes = append(g.nodes, &node{dir: f.dir, pkg: f.syntax.Name.Name, name: "init"})
	}
	return id
}

// nodeAt returns the declaration at a place, or -1.
func (g *graph) nodeAt(pos token.Pos) int {
	i, found := slices.BinarySearch(g.starts, pos)
	if !found {
		i--
	}
	if i < 0 || pos >= g.ends[i] {
		return -1
	}
	return g.at[i]
}

// refer notes that one node refers to another.
func (g *graph) refer(from, to int) {
	if from < 0 || to < 0 || from == to {
		return
	}
	users := g.nodes[to].users
	if len(users) == 0 || users[len(users)-1] != from {
		g.nodes[to].users = append(users, from)
	}
}

// link adds the references that the type check found in the files of a package.
func (g *graph) link(p *variant, info *types.Info) {
	for _, f := range p.files {
		inits := g.initOf(f)
		for _, d := range declarations(f.syntax) {
			ids := g.bySpec[d.spec]
			g.initialises(inits, ids, d, info)
			ast.Inspect(d.spec, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				object := info.Uses[id]
				if object == nil {
					if _, defined := info.Defs[id]; !defined && id.Name != "_" {
						// The type check does not know it: it is each declaration of this name.
						for _, from := range ids {
							for _, to := range g.byName[id.Name] {
								g.refer(from, to)
							}
						}
					}
					return true
				}
				to := g.nodeAt(object.Pos())
				for _, from := range ids {
					g.refer(from, to)
				}
				return true
			})
		}
		for _, spec := range f.syntax.Imports {
			g.importsInit(p, f, strings.Trim(spec.Path.Value, `"`))
		}
	}
}

// importsInit: the initialisation of a package is that of its imports, too.
func (g *graph) importsInit(p *variant, f *source, imported string) {
	from := g.initOf(f)
	q := g.m.byPath[p.resolve(imported)]
	if q == nil || !q.local || len(q.files) == 0 {
		return
	}
	g.refer(from, g.initOf(q.files[0]))
}

// initialises refers the initialisation of a package to what it runs: functions init, and variables with values that
// come from functions of this module.
func (g *graph) initialises(inits int, ids []int, d declaration, info *types.Info) {
	runs := d.tok == token.FUNC && d.names[0] == "init"
	if d.tok == token.VAR {
		ast.Inspect(d.spec, func(n ast.Node) bool {
			if _, ok := n.(*ast.FuncLit); ok {
				return false
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			var name *ast.Ident
			switch f := ast.Unparen(call.Fun).(type) {
			case *ast.Ident:
				name = f
			case *ast.SelectorExpr:
				name = f.Sel
			default:
				runs = true
				return true
			}
			switch object := info.Uses[name].(type) {
			case *types.Func:
				runs = runs || g.nodeAt(object.Pos()) >= 0
			case *types.TypeName, *types.Builtin:
			default:
				runs = true
			}
			return true
		})
	}
	for _, id := range ids {
		if runs {
			g.refer(inits, id)
		}
	}
}

// complete adds the references that no text shows: a type's methods that may be called by an interface, a test's
// initialisation, and the programs that a text names.
func (g *graph) complete() {
	for _, path := range g.m.foreign() {
		scope := path.Scope()
		for _, name := range scope.Names() {
			if i, ok := scope.Lookup(name).Type().Underlying().(*types.Interface); ok {
				for m := range i.Methods() {
					g.called[m.Name()] = true
				}
			}
		}
	}
	for _, id := range g.methods {
		n := g.nodes[id]
		receiver, method, _ := strings.Cut(n.name, ".")
		if g.called[method] {
			for _, other := range g.byName[receiver] {
				if o := g.nodes[other]; o.dir == n.dir && o.pkg == n.pkg && o.tok == token.TYPE {
					g.refer(other, id)
				}
			}
		}
	}
	mains := map[string][]int{}
	for id, n := range g.nodes {
		if n.pkg == "main" && (n.name == "main" || n.name == "init") {
			mains[n.dir] = append(mains[n.dir], id)
		}
	}
	for id, n := range g.nodes {
		if n.test {
			g.refer(id, g.inits[n.dir+" "+n.pkg])
			if base, external := strings.CutSuffix(n.pkg, "_test"); external {
				if inits, ok := g.inits[n.dir+" "+base]; ok {
					g.refer(id, inits)
				}
			}
		}
		for _, text := range n.texts {
			for _, dir := range g.m.named(n.dir, text) {
				for _, to := range mains[dir] {
					g.refer(id, to)
				}
			}
		}
	}
}

// seeds returns the nodes that a change touches.
func (g *graph) seeds(c *change) (list []int) {
	for id, n := range g.nodes {
		keys := c.decls[n.dir]
		name := n.name
		if keys[n.pkg+" "+name] {
			list = append(list, id)
			continue
		}
		for _, file := range c.files {
			if n.embedsFile(file) || slices.ContainsFunc(n.texts, func(text string) bool {
				return namesFile(text, file)
			}) {
				list = append(list, id)
				break
			}
		}
	}
	return list
}

// embedsFile reports whether a file becomes a part of the node's value.
func (n *node) embedsFile(file string) bool {
	for _, pattern := range n.embeds {
		pattern = path.Join(n.dir, strings.TrimPrefix(strings.Trim(pattern, "\"`"), "all:"))
		for up := file; up != "."; up = path.Dir(up) {
			if ok, err := path.Match(pattern, up); ok || err != nil {
				return true
			}
		}
	}
	return false
}

// namesFile reports whether a text is a path of the file, of a folder above it, or a pattern of such paths. The
// folder where it begins is unknown, so the ends are compared.
func namesFile(text, file string) bool {
	if text == "" || len(text) > 200 || strings.ContainsAny(text, "\n ") {
		return false
	}
	up := strings.HasPrefix(text, "../")
	for strings.HasPrefix(text, "../") || strings.HasPrefix(text, "./") {
		_, text, _ = strings.Cut(text, "/")
	}
	text = strings.Trim(text, "/")
	if text == "" {
		return false
	}
	parts := strings.Split(text, "/")
	for whole := file; whole != "."; whole = path.Dir(whole) {
		have := strings.Split(whole, "/")
		if len(parts) > len(have) {
			return false
		}
		// What reads all Go files of a folder is in registers.go, and a name without a folder is often another file.
		if path.Ext(file) == ".go" && (whole != file || len(parts) == 1 && !up || parts[len(parts)-1] != path.Base(file)) {
			return false
		}
		// A folder's name alone is often a word.
		if whole != file && len(parts) == 1 && !up {
			continue
		}
		ok, err := path.Match(text, strings.Join(have[len(have)-len(parts):], "/"))
		if ok && err == nil && strings.Trim(text, "*./") != "" {
			return true
		}
	}
	return false
}

// reachers returns all nodes that can reach one of the seeds.
func (g *graph) reachers(seeds []int) map[int]bool {
	reached := map[int]bool{}
	queue := slices.Clone(seeds)
	for len(queue) > 0 {
		id := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if reached[id] {
			continue
		}
		reached[id] = true
		queue = append(queue, g.nodes[id].users...)
	}
	return reached
}

// source is a Go file of the module.
type source struct {
	name   string // relative to the root
	dir    string
	syntax *ast.File
}

func parseFile(fset *token.FileSet, root, name string) (*source, error) {
	const mode = parser.ParseComments | parser.SkipObjectResolution
	syntax, err := parser.ParseFile(fset, filepath.Join(root, name), nil, mode)
	if syntax == nil {
		return nil, err
	}
	return &source{name: name, dir: path.Dir(name), syntax: syntax}, err
}
