package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// goPackage is a package, as go list describes it.
type goPackage struct {
	ImportPath, Dir           string
	TestGoFiles, XTestGoFiles []string
}

// testedPackages returns the packages of the module that have tests.
func testedPackages() (found []goPackage, err error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", module+"/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			found = append(found, p)
		}
	}
}

// functions returns the functions of the package's test files by their names.
func (p goPackage) functions() (map[string]*ast.FuncDecl, error) {
	found := map[string]*ast.FuncDecl{}
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				found[fn.Name.Name] = fn
			}
		}
	}
	return found, nil
}

// longTests returns a job that runs the tests with a long form alone: suite unit has run the others.
func longTests() ([]job, error) {
	packages, err := testedPackages()
	if err != nil {
		return nil, err
	}
	j := job{flags: []string{"-timeout=" + setting("SIMULATION_LIMIT", "20m")}}
	var names []string
	for _, p := range packages {
		functions, err := p.functions()
		if err != nil {
			return nil, err
		}
		if tests := shortened(functions); len(tests) > 0 {
			j.packages = append(j.packages, target("", p.ImportPath))
			names = append(names, tests...)
		}
	}
	longestFirst(j.packages)
	slices.Sort(names)
	j.run = "^(" + strings.Join(slices.Compact(names), "|") + ")$"
	return []job{j}, nil
}

// shortened returns the tests that call testing.Short, also by way of other functions of the test files. It follows
// names, so it may return too many tests, and never too few.
func shortened(functions map[string]*ast.FuncDecl) (tests []string) {
	reach := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for name, fn := range functions {
			if reach[name] {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					x, _ := n.X.(*ast.Ident)
					asks := x != nil && (x.Name == "testing" && n.Sel.Name == "Short" || x.Name == "search")
					if asks || reach[n.Sel.Name] {
						reach[name] = true
					}
				case *ast.Ident:
					if reach[n.Name] {
						reach[name] = true
					}
				}
				return !reach[name]
			})
			grown = grown || reach[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reach)) {
		if strings.HasPrefix(name, "Test") {
			tests = append(tests, name)
		}
	}
	return tests
}

// fuzzTargets returns a job for each fuzz target.
func fuzzTargets() (jobs []job, err error) {
	packages, err := testedPackages()
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		functions, err := p.functions()
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(functions)) {
			if !strings.HasPrefix(name, "Fuzz") {
				continue
			}
			// A number of inputs, not a time: a fuzz run that is stopped by its time sometimes ends in an error of its own.
			jobs = append(jobs, job{
				flags: []string{"-fuzz=^" + name + "$", "-fuzztime=" + setting("FUZZ_TIME", "5000x")}, run: "^$",
				packages: []string{target("", p.ImportPath)},
			})
		}
	}
	return jobs, nil
}
