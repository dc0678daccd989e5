package layout

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Engine type-checks the non-test files of the engine and of each package below it, and
// checks their purity.
func Engine(root string) (problems []string, err error) {
	packages, err := engineSources(root)
	if err != nil {
		return nil, err
	}
	for _, folder := range sortedKeys(packages) {
		found, err := checkPurity(root, packages[folder])
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// engineSources returns the texts of the engine's non-test files, by folder and name.
func engineSources(root string) (packages map[string]map[string]string, err error) {
	packages = map[string]map[string]string{}
	err = walk(root, func(name string) error {
		folder := path.Dir(name)
		if !within(folder, "engine") || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if packages[folder] == nil {
			packages[folder] = map[string]string{}
		}
		packages[folder][name] = string(text)
		return nil
	})
	if err == nil && len(packages["engine"]) == 0 {
		err = fmt.Errorf("no Go files in %s", filepath.Join(root, "engine"))
	}
	return packages, err
}

// checkPurity checks a package given by its sources. root is where its imports are
// resolved.
func checkPurity(root string, sources map[string]string) ([]string, error) {
	fset, files, info, err := check(root, sources)
	if err != nil {
		return nil, err
	}
	return Purity(fset, files, info), nil
}

// check parses and type-checks a package given by its sources.
func check(root string, sources map[string]string) (*token.FileSet, []*ast.File, *types.Info, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	imports := map[string]bool{}
	for _, name := range sortedKeys(sources) {
		file, err := parser.ParseFile(fset, name, sources[name], parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, nil, nil, err
		}
		files = append(files, file)
		for _, spec := range file.Imports {
			imports[strings.Trim(spec.Path.Value, `"`)] = true
		}
	}
	exports, err := exportData(root, sortedKeys(imports))
	if err != nil {
		return nil, nil, nil, err
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(exports[path])
	})}
	if _, err := config.Check("engine", fset, files, info); err != nil {
		return nil, nil, nil, err
	}
	return fset, files, info, nil
}

// exportData asks the go command for the compiler's view of the packages and of
// all they import.
func exportData(root string, packages []string) (map[string]string, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "--"}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = file
	}
	return exports, nil
}
