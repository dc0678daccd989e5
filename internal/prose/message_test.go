package prose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/engine/message"
)

var verb = regexp.MustCompile(`%[0-9]*[a-zA-Z]`)

// verbs are those that a kind of value may have.
var verbs = map[string]string{"Str": "sqv", "Num": "dvX", "Dur": "v", "Sub": "s"}

// TestSentences compares the engine's messages with the sentences: each message has one, with a
// verb for each value, and no sentence is without its message.
func TestSentences(t *testing.T) {
	for id, text := range sentences {
		if (text == "") != (message.ID(id) == message.None) {
			t.Errorf("message %d has the sentence %q", id, text)
		}
	}
	names := idsByName(t)
	used := map[string]bool{"Verbatim": true, "InField": true}
	calls := 0
	walkEngine(t, func(fset *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "message" {
					used[sel.Sel.Name] = true
				}
			}
			call, ok := n.(*ast.CallExpr)
			if !ok || !isMessage(call.Fun, "New") {
				return true
			}
			sel, ok := call.Args[0].(*ast.SelectorExpr)
			if !ok {
				return true // an ID that was chosen before
			}
			calls++
			at, text := fset.Position(call.Pos()), sentences[names[sel.Sel.Name]]
			want := verb.FindAllString(text, -1)
			if len(want) != len(call.Args)-1 {
				t.Errorf(
					"%s: %s has %d values, and its sentence %q has %d verbs", at, sel.Sel.Name, len(call.Args)-1, text, len(want),
				)
				return true
			}
			for i, arg := range call.Args[1:] {
				value, ok := arg.(*ast.CallExpr)
				if !ok {
					continue
				}
				for kind, fits := range verbs {
					if isMessage(value.Fun, kind) && !strings.Contains(fits, want[i][len(want[i])-1:]) {
						t.Errorf("%s: value %d of %s is a %s, and its verb is %s", at, i+1, sel.Sel.Name, kind, want[i])
					}
				}
			}
			return true
		})
	})
	if calls < 250 {
		t.Errorf("the engine makes %d messages: is it read?", calls)
	}
	for name := range names {
		if !used[name] && name != "None" {
			t.Errorf("no part of the engine uses message.%s", name)
		}
	}
}

func isMessage(e ast.Expr, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == "message"
}

// idsByName reads the list of messages.
func idsByName(t *testing.T) map[string]message.ID {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../engine/message/id.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]message.ID{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || len(g.Specs) < 2 {
			continue
		}
		for i, s := range g.Specs[:len(g.Specs)-1] {
			names[s.(*ast.ValueSpec).Names[0].Name] = message.ID(i)
		}
	}
	if len(names) != message.Count {
		t.Fatalf("id.go lists %d messages, and message.Count is %d", len(names), message.Count)
	}
	return names
}

// walkEngine visits the files of the engine and of the packages below it.
func walkEngine(t *testing.T, visit func(*token.FileSet, *ast.File)) {
	t.Helper()
	const root = "../../engine"
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, "message/") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, name), nil, 0)
		if err == nil {
			visit(fset, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSentence(t *testing.T) {
	for want, text := range map[string]*message.Text{
		"":                       nil,
		"key account:1 is held":  message.New(message.KeyHeld, message.Str("account:1")),
		"as it was written, 5 %": message.Plain("as it was written, 5 %"),
		"ttl 1m0s is not between 2s and 10m0s": message.New(message.NotBetween,
			message.Str("ttl"), message.Dur(time.Minute), message.Dur(2*time.Second), message.Dur(10*time.Minute)),
		"version 18446744073709551615 is from before the journal was restored: read again": message.New(
			message.NotRestored, message.Num(^uint64(0)),
		),
		`key "a//b" contains an empty segment: use single slashes, and none at the start or end`: message.New(
			message.InvalidKey, message.Str("a//b"), message.Sub(message.New(message.KeyEmptySegment)),
		),
		"the lease on a was released by its holder": message.New(message.LeaseOver, message.Sub(message.New(
			message.TheLease, message.Str("a"),
		)),
			message.Sub(message.New(message.LeaseReleased)), message.Sub(nil), message.Sub(nil), message.Sub(nil),
			message.Sub(nil)),
		`message 60000 "a" 7`: message.New(60000, message.Str("a"), message.Num(7)),
	} {
		if got := Sentence(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
