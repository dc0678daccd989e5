package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// change is what differs between a commit and the work tree.
type change struct {
	base  string
	files []string // relative to the root, sorted, with those that are gone
	// decls has the keys of the changed declarations of each folder with changed Go files. A key is the package's
	// name, a space, and the declaration's name.
	decls map[string]map[string]bool
}

// git runs git in the folder root.
func git(root string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// branchPoint returns the commit where HEAD left origin/main or main: on main itself, the last commit that
// origin/main has, or else HEAD.
func branchPoint(root string) (string, error) {
	for _, main := range []string{"origin/main", "main"} {
		if _, err := git(root, "rev-parse", "--verify", "--quiet", main+"^{commit}"); err == nil {
			out, err := git(root, "merge-base", "HEAD", main)
			return strings.TrimSpace(out), err
		}
	}
	return "HEAD", nil
}

// changed compares the work tree at root with the commit base.
func changed(root, base string) (*change, error) {
	differing, err := git(root, "diff", "-z", "--name-only", "--no-renames", base, "--")
	if err != nil {
		return nil, err
	}
	untracked, err := git(root, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	c := &change{base: base, decls: map[string]map[string]bool{}}
	for name := range strings.SplitSeq(differing+untracked, "\x00") {
		if name != "" {
			c.files = append(c.files, name)
		}
	}
	slices.Sort(c.files)
	c.files = slices.Compact(c.files)

	then, now := map[string]texts{}, map[string]texts{}
	for _, name := range c.files {
		if path.Ext(name) != ".go" {
			continue
		}
		dir := path.Dir(name)
		if c.decls[dir] == nil {
			c.decls[dir], then[dir], now[dir] = map[string]bool{}, texts{}, texts{}
		}
		// A file that is new has no text at base.
		if old, err := git(root, "show", base+":"+name); err == nil {
			then[dir].add(name, []byte(old))
		}
		if text, err := os.ReadFile(filepath.Join(root, name)); err == nil {
			now[dir].add(name, text)
		}
	}
	for dir, keys := range c.decls {
		compare(keys, then[dir], now[dir])
	}
	return c, nil
}

// texts has the texts of declarations by key. Several declarations may have one key: init, the blank name, and the
// same name in files for several platforms.
type texts map[string][]string

// compare adds to keys what differs between two states of a package.
func compare(keys map[string]bool, then, now texts) {
	names := slices.Concat(slices.Collect(maps.Keys(then)), slices.Collect(maps.Keys(now)))
	for _, key := range names {
		slices.Sort(then[key])
		slices.Sort(now[key])
		if slices.Equal(then[key], now[key]) {
			continue
		}
		keys[key] = true
		pkg, name, _ := strings.Cut(key, " ")
		if len(then[key]) > 0 && len(now[key]) > 0 {
			continue
		}
		// A method more or less changes which interfaces its type has.
		if receiver, _, method := strings.Cut(name, "."); method {
			keys[pkg+" "+receiver] = true
		}
		// No declaration mentions one that is gone, but its initialisation may be missed.
		if len(now[key]) == 0 && strings.Contains(strings.Join(then[key], "\n"), "(") {
			keys[pkg+" init"] = true
		}
	}
}

// add notes the declarations of a file. A file that cannot be parsed is one declaration, and the type check
// reports it.
func (t texts) add(name string, text []byte) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t["? "+name] = append(t["? "+name], string(text))
		return
	}
	// When the file is built is part of each of its declarations.
	conditions := constraint(name, file)
	imports := map[string]string{}
	for _, spec := range file.Imports {
		used := strings.Trim(spec.Path.Value, `"`)
		local := path.Base(used)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		imports[local] = used
		if local == "_" || local == "." {
			t.note(file.Name.Name+" init", "import "+local+used)
		}
	}
	for _, d := range declarations(file) {
		var b bytes.Buffer
		b.WriteString(conditions)
		for _, doc := range d.docs {
			for _, c := range doc.List {
				if strings.HasPrefix(c.Text, "//go:") {
					fmt.Fprintln(&b, c.Text)
				}
			}
		}
		for _, n := range d.nodes {
			// Without comments, and without positions, so that the line breaks are always the same.
			bare(n)
			printer.Fprint(&b, token.NewFileSet(), n)
			fmt.Fprintln(&b)
			ast.Inspect(n, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && imports[id.Name] != "" {
					fmt.Fprintln(&b, id.Name, imports[id.Name])
				}
				return true
			})
		}
		fmt.Fprint(&b, d.place)
		for _, key := range d.names {
			t.note(file.Name.Name+" "+key, b.String())
		}
	}
}

// bare removes the comments that belong to parts of n.
func bare(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.GenDecl:
			n.Doc = nil
		}
		return true
	})
}

func (t texts) note(key, text string) { t[key] = append(t[key], text) }

// constraint returns what decides when a file is built: its constraints and the endings of its name.
func constraint(name string, file *ast.File) string {
	var b strings.Builder
	for _, group := range file.Comments {
		if group.Pos() < file.Package {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:build") {
					fmt.Fprintln(&b, c.Text)
				}
			}
		}
	}
	parts := strings.Split(strings.TrimSuffix(path.Base(name), ".go"), "_")
	for _, part := range parts[1:] {
		if platforms[part] || part == "test" {
			fmt.Fprintln(&b, part)
		}
	}
	return b.String()
}

var platforms = map[string]bool{
	"linux": true, "darwin": true, "windows": true, "unix": true, "freebsd": true, "openbsd": true, "netbsd": true,
	"js": true, "wasm": true, "plan9": true, "android": true, "ios": true, "solaris": true, "amd64": true, "arm64": true,
	"arm": true, "386": true,
}

// declaration is a package-level function, type, or line of constants or variables.
type declaration struct {
	names []string // a method's with its receiver's type: T.M
	nodes []ast.Node
	docs  []*ast.CommentGroup
	place string // the number of a constant in its group, if its value depends on it
	spec  ast.Node
	tok   token.Token
}

// declarations lists the package-level declarations of a file.
func declarations(file *ast.File) (list []declaration) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if receiver := receiverOf(d); receiver != "" {
				name = receiver + "." + name
			}
			nodes := []ast.Node{d.Name, d.Type}
			if d.Recv != nil {
				nodes = append(nodes, d.Recv)
			}
			if d.Body != nil {
				nodes = append(nodes, d.Body)
			}
			list = append(list, declaration{
				names: []string{name}, nodes: nodes, docs: groups(d.Doc), spec: d, tok: token.FUNC,
			})
		case *ast.GenDecl:
			list = append(list, specs(d)...)
		}
	}
	return list
}

func specs(d *ast.GenDecl) (list []declaration) {
	var inherited *ast.ValueSpec
	for i, spec := range d.Specs {
		one := declaration{nodes: []ast.Node{spec}, docs: groups(d.Doc), spec: spec, tok: d.Tok}
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			one.names = []string{spec.Name.Name}
			one.docs = groups(d.Doc, spec.Doc)
			one.nodes = nil
			if spec.TypeParams != nil {
				one.nodes = append(one.nodes, spec.TypeParams)
			}
			one.nodes = append(one.nodes, spec.Type)
			one.place = fmt.Sprint(spec.Assign.IsValid())
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				one.names = append(one.names, name.Name)
			}
			one.docs = groups(d.Doc, spec.Doc)
			if d.Tok == token.CONST {
				if len(spec.Values) > 0 || spec.Type != nil {
					inherited = spec
				} else if inherited != nil {
					one.nodes = append(one.nodes, inherited)
				}
				if inherited != nil && mentions(inherited, "iota") {
					one.place = fmt.Sprint(i)
				}
				if inherited != nil && inherited != spec {
					// What it repeats counts, not the name of the constant that it repeats.
					one.nodes = []ast.Node{spec}
					for _, v := range inherited.Values {
						one.nodes = append(one.nodes, v)
					}
					if inherited.Type != nil {
						one.nodes = append(one.nodes, inherited.Type)
					}
				}
			}
		default:
			continue
		}
		list = append(list, one)
	}
	return list
}

func groups(docs ...*ast.CommentGroup) []*ast.CommentGroup {
	return slices.DeleteFunc(docs, func(g *ast.CommentGroup) bool { return g == nil })
}

func mentions(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// receiverOf returns the name of a method's type.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// module returns the folder of the nested module that has the file, or "".
func moduleOf(root, name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return dir
		}
	}
	return ""
}

// owner returns the folder of the package to which a file belongs: the next one above it that has Go files, or "" if
// none below the root has, and the file is not Go.
func owner(root, name string) string {
	dir := path.Dir(name)
	if path.Ext(name) == ".go" && !strings.Contains("/"+dir+"/", "/testdata/") {
		return cmp.Or(dir, ".")
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if list, _ := filepath.Glob(filepath.Join(root, dir, "*.go")); len(list) > 0 {
			return dir
		}
	}
	return ""
}
