package prose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// doorWords match the vocabulary of single doors: routes and headers of HTTP, fields of its bodies, flags and commands.
var doorWords = regexp.MustCompile(
	`/v1/|\b(?:GET|POST|PUT|PATCH|DELETE)\b|\bon_conflict\b|_(?:ms|id|prefix|position)\b|\bIf-(?:None-)?Match\b|` +
		`\b[Hh]eader\b|\bAuthorization\b|\bBearer\b| --[a-z]|\(--[a-z]`,
)

// The sentences go through every door: to programs that speak HTTP, to the clients of three languages, to a person at
// the command line, and to models. So they name what to do, and no door's way to do it.
func TestSentencesNameNoDoor(t *testing.T) {
	ofHTTP := []string{"use a method in the Allow header"} // to a request that no client sends
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range append(files, "../problem/code.go") {
		if strings.HasSuffix(file, "_test.go") || file == "cli.go" || file == "shell.go" { // of the command line alone
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			checked++
			for _, known := range ofHTTP {
				text = strings.ReplaceAll(text, known, "")
			}
			if word := doorWords.FindString(text); word != "" {
				t.Errorf("%s: %q has %q", set.Position(literal.Pos()), text, word)
			}
			return true
		})
	}
	if checked < 500 {
		t.Errorf("only %d literals were checked", checked)
	}
}
