package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// run is the tests of one package that are to run.
type run struct {
	dir   string
	whole bool // all of them
	tests map[string]bool
	skip  []string // tests that are left out
	own   bool     // the package has a changed file
}

// pattern returns the tests as an argument of -run.
func (r *run) pattern() string { return pattern(slices.Sorted(maps.Keys(r.tests))) }

// pattern returns a regular expression that matches the names and no others.
func pattern(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// plan is what a change demands.
type plan struct {
	changed []string            // folders of packages with a changed file
	vet     []string            // those with a changed Go file
	faults  map[string][]string // what does not compile, by import path
	always  []*run              // the registers
	runs    []*run              // what else can reach the change
	reached int                 // how many tests of other packages can reach it
	apart   []string            // suites of their own that the change may break
	modules []string            // other modules of the repository that it may break
}

// choose selects the tests for a change of the module at root.
func choose(root string, c *change, apart *regexp.Regexp, registers []register) (*plan, error) {
	p := &plan{}
	for _, r := range registers {
		if !r.applies(c.files) {
			continue
		}
		one := runOf(&p.always, r.dir)
		one.whole = one.whole || len(r.tests) == 0
		for _, name := range r.tests {
			one.tests[name] = true
		}
	}
	if len(c.files) == 0 {
		return p, nil
	}
	m, err := load(root)
	if err != nil {
		return nil, err
	}
	g := newGraph(m)

	// The folders with changes.
	dirs, everything := map[string]bool{}, false
	inModules := map[string]bool{}
	for _, file := range c.files {
		switch other := moduleOf(root, file); {
		case other != "":
			inModules[other] = true
		case file == "go.mod" || file == "go.sum":
			everything = true
		default:
			if dir := owner(root, file); dir != "" {
				dirs[dir] = true
				if path.Ext(file) == ".go" && c.decls[dir] != nil && !slices.Contains(p.vet, dir) && m.has(dir) {
					p.vet = append(p.vet, dir)
				}
			}
		}
	}
	p.changed = slices.Sorted(maps.Keys(dirs))
	seeds := g.seeds(c)
	from := map[string]bool{}
	for dir := range dirs {
		from[path.Join(m.path, dir)] = true // also of a package that is gone
	}
	for _, id := range seeds {
		dirs[g.nodes[id].dir] = dirs[g.nodes[id].dir] || false
	}
	for _, l := range m.list {
		if _, ok := dirs[l.dir]; l.local && (ok || everything) {
			from[l.ImportPath] = true
		}
	}
	distance := m.users(g, from)

	tested := map[string]bool{}
	for _, l := range m.list {
		if l.base() == l.ForTest {
			tested[l.ForTest] = true
		}
	}
	p.faults, err = m.check(func(l *variant) bool {
		// One variant of each package is enough: the one with its tests.
		_, reached := distance[l.ImportPath]
		return reached && (l.tests() != "" || l.ForTest == "" && !tested[l.ImportPath])
	}, g.link)
	if err != nil {
		return nil, err
	}
	g.complete()
	reached := g.reachers(seeds)

	suites := map[string]bool{}
	for id, n := range g.nodes {
		if !n.test && n.name != "TestMain" || !strings.HasSuffix(n.file, "_test.go") {
			continue
		}
		if !dirs[n.dir] && !everything && !reached[id] {
			continue
		}
		if apart != nil && apart.MatchString(path.Join(m.path, n.dir)) {
			suites[n.dir] = true
			continue
		}
		one := runOf(&p.runs, n.dir)
		one.tests[n.name] = true
		if n.test && !dirs[n.dir] {
			p.reached++
		}
		one.own = dirs[n.dir]
		one.whole = one.whole || one.own || everything || n.name == "TestMain"
	}
	// The go command knows the result of all tests of a package for longer than that of a selection.
	total := map[string]int{}
	for _, n := range g.nodes {
		if n.test {
			total[n.dir]++
		}
	}
	for _, one := range p.runs {
		one.whole = one.whole || len(one.tests) == total[one.dir]
	}
	p.apart = slices.Sorted(maps.Keys(suites))
	var others []string
	if len(seeds) > 0 || everything {
		others, err = m.others(func(imported string) bool { _, ok := distance[imported]; return ok })
		if err != nil {
			return nil, err
		}
	}
	for _, other := range others {
		inModules[other] = true
	}
	p.modules = slices.Sorted(maps.Keys(inModules))
	return p, nil
}

// runOf returns the entry of a package, and makes it if there is none.
func runOf(list *[]*run, dir string) *run {
	for _, one := range *list {
		if one.dir == dir {
			return one
		}
	}
	one := &run{dir: dir, tests: map[string]bool{}}
	*list = append(*list, one)
	return one
}

// has reports whether there is a package in a folder.
func (m *module) has(dir string) bool {
	return slices.ContainsFunc(m.list, func(l *variant) bool { return l.local && l.dir == dir && len(l.files) > 0 })
}

// others returns the folders of the repository's other modules that use one of the packages.
func (m *module) others(uses func(path string) bool) (list []string, err error) {
	files, err := git(m.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*/go.mod")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(files, "\x00") {
		if name == "" {
			continue
		}
		dir, found := path.Dir(name), false
		err := filepath.WalkDir(filepath.Join(m.root, dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || found || d.IsDir() || filepath.Ext(name) != ".go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if file == nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil {
					found = found || uses(text)
					for _, command := range m.named(".", text) {
						found = found || uses(path.Join(m.path, command))
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", dir, err)
		}
		if found {
			list = append(list, dir)
		}
	}
	return list, nil
}
