package securitytest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../../.."

// secretName is how a secret, or what is compared in its place, is called.
var secretName = regexp.MustCompile(
	`(?i)secret|credential$|bearer|password|passphrase|digest|\bmac$|hmac|signature|apikey`,
)

// notSecret are comparisons of values that are only named like secrets. Each has its reason.
var notSecret = map[string]string{
	"server/credential.go: other.digest == identity.digest": "two lines of the operator's own file, when it " +
		"is read",
	"guard/proxy/upstream.go: strings.Contains(credential.secret)": "an answer of the guarded API, from which the " +
		"proxy takes its own credential out; no caller's guess is compared",
}

// comparing lists the comparisons of secrets in a file that are not constant in time.
// A comparison with nothing, with a constant or of lengths tells nothing.
func comparing(fset *token.FileSet, file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.BinaryExpr:
			if (x.Op == token.EQL || x.Op == token.NEQ) && secret(x.X) && !constant(x.Y) ||
				(x.Op == token.EQL || x.Op == token.NEQ) && secret(x.Y) && !constant(x.X) {
				found = append(found, text(x.X)+" "+x.Op.String()+" "+text(x.Y))
			}
		case *ast.SwitchStmt:
			if x.Tag != nil && secret(x.Tag) {
				found = append(found, "switch "+text(x.Tag))
			}
		case *ast.CallExpr:
			name := text(x.Fun)
			switch name {
			case "bytes.Equal", "bytes.Compare", "bytes.HasPrefix", "strings.EqualFold", "strings.Compare", "slices.Equal",
				"slices.Compare", "slices.Contains", "strings.Contains", "reflect.DeepEqual", "cmp.Compare":
				for _, arg := range x.Args {
					if secret(arg) {
						found = append(found, name+"("+text(arg)+")")
					}
				}
			}
		}
		return true
	})
	return found
}

// secret reports whether an expression is called like one.
func secret(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.Ident:
		return secretName.MatchString(x.Name) && x.Name != "Authorization"
	case *ast.SelectorExpr:
		return secretName.MatchString(x.Sel.Name)
	case *ast.SliceExpr:
		return secret(x.X)
	case *ast.ParenExpr:
		return secret(x.X)
	case *ast.StarExpr:
		return secret(x.X)
	case *ast.CallExpr: // a conversion
		return len(x.Args) == 1 && (text(x.Fun) == "string" || strings.HasPrefix(text(x.Fun), "[]byte")) && secret(x.Args[0])
	}
	return false
}

func constant(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return x.Name == "nil"
	case *ast.ParenExpr:
		return constant(x.X)
	}
	return false
}

// text writes a short expression as in the source.
func text(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return text(x.X) + "." + x.Sel.Name
	case *ast.SliceExpr:
		return text(x.X) + "[:]"
	case *ast.CallExpr:
		args := make([]string, len(x.Args))
		for i, a := range x.Args {
			args[i] = text(a)
		}
		return text(x.Fun) + "(" + strings.Join(args, ", ") + ")"
	case *ast.BasicLit:
		return x.Value
	case *ast.ArrayType:
		return "[]" + text(x.Elt)
	case *ast.ParenExpr:
		return "(" + text(x.X) + ")"
	}
	return fmt.Sprintf("%T", e)
}

// serving are the folders with sources of the server, the guards, the client and the command.
var serving = []string{"server", "resp", "guard", "client", "cmd"}

// sources calls each with every source file below some folders, tests left out.
func sources(t *testing.T, folders []string, each func(name string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	n := 0
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			n++
			name, err := filepath.Rel(root, path)
			each(filepath.ToSlash(name), fset, file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 20 {
		t.Fatalf("only %d files", n)
	}
}

func comparisons(t *testing.T, s *site) {
	seen, constantTime := map[string]bool{}, 0
	sources(t, serving, func(name string, fset *token.FileSet, file *ast.File) {
		for _, found := range comparing(fset, file) {
			where := name + ": " + found
			if notSecret[where] == "" {
				t.Errorf("%s is not constant in time: use crypto/subtle", where)
			}
			seen[where] = true
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && text(call.Fun) == "subtle.ConstantTimeCompare" {
				constantTime++
			}
			return true
		})
	})
	for where := range notSecret {
		if !seen[where] {
			t.Errorf("%s is no more: take it off the list", where)
		}
	}
	if constantTime < 2 {
		t.Errorf("%d comparisons are constant in time: of credentials, and of the passwords of Git LFS", constantTime)
	}
}

// The rule must be able to fail.
func TestComparisonsAreFound(t *testing.T) {
	for source, want := range map[string]int{
		`func f(a, secret string) bool { return a == secret }`:                                  1,
		`func f(a, b string) bool { return a == b }`:                                            0,
		`func f(l line, digest []byte) bool { return string(l.digest) != string(digest) }`:      1,
		`func f(l line, a []byte) bool { return bytes.Equal(l.digest[:], a) }`:                  1,
		`func f(l line, a []byte) bool { return subtle.ConstantTimeCompare(l.digest, a) == 1 }`: 0,
		`func f(bearer string) bool { return bearer == "" }`:                                    0,
		`func f(bearer string) bool { return len(bearer) == n }`:                                0,
		`func f(bearer string) bool { switch bearer {
case x:
}
return false }`: 1,
		`func f(c config, a string) bool { return strings.EqualFold(a, c.Password) }`: 1,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "x.go", "package x\n"+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if found := comparing(fset, file); len(found) != want {
			t.Errorf("%s: found %q", source, found)
		}
	}
}

func guessing(t *testing.T, s *site) {
	sources(t, serving, func(name string, fset *token.FileSet, file *ast.File) {
		for _, spec := range file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(path, "math/rand") && !idless[name] {
				t.Errorf("%s imports %s", name, path)
			}
		}
	})
	seen := map[string]bool{}
	bits := make([]int, 128)
	const n = 64
	for range n {
		id := s.agent(t, rival, "POST", "/v1/sessions", `{"ttl_ms":1000}`).want(200).must("session.id")
		if seen[id] || len(id) != 34 {
			t.Fatalf("id %s", id)
		}
		seen[id] = true
		for i, b := range idOf(id) {
			for j := range 8 {
				bits[8*i+j] += int(b >> j & 1)
			}
		}
	}
	// A bit that never changes is one that need not be guessed: by chance once in 2^56 runs.
	for i, set := range bits {
		if set == 0 || set == n {
			t.Errorf("bit %d is the same in %d ids", i, n)
		}
	}
}

// idless are files that use math/rand for other things than ids: pauses and loads.
var idless = map[string]bool{"client/backoff.go": true, "client/keeper.go": true}
