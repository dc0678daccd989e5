package prose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
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
	ofHTTP := []string{"use a method in the Allow header"}             // to a request that no client sends
	if n := readTexts(t, ".", ofHTTP, "cli.go", "shell.go"); n < 400 { // of the command line alone
		t.Errorf("only %d literals were checked", n)
	}
	if n := readTexts(t, "../problem", ofHTTP); n < 150 {
		t.Errorf("only %d codes were checked", n)
	}
}

// Models and people read what the doors of MCP and of hooks say by themselves: nothing in it is of HTTP, or a flag.
func TestDoorsSayTheirOwnWords(t *testing.T) {
	known := []string{ // to programs that speak HTTP to these doors
		"DELETE ends a conversation: name it with the header ", "a hook is a POST of the harness's own JSON",
		`Bearer realm="interlock"`, "Authorization: Bearer ",
		"git commit --only ", // of git, for a session that works in a shell
	}
	for folder, least := range map[string]int{
		"mcp": 150, "hook": 50, "hook/place": 0, "internal/hookclient": 3, "internal/agent": 5, "cmd/interlock-hook": 10,
	} {
		if n := readTexts(t, "../../"+folder, known); n < least {
			t.Errorf("%s: only %d literals were checked", folder, n)
		}
	}
}

// readTexts checks the literals with a blank in the files of a folder, but for some, and returns how many there are.
func readTexts(t *testing.T, folder string, known []string, but ...string) (checked int) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || slices.Contains(but, filepath.Base(file)) {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok {
				field.Tag = nil
			}
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.TrimSpace(text), " ") { // a path, or a name in code
				return true
			}
			checked++
			for _, allowed := range known {
				text = strings.ReplaceAll(text, allowed, "")
			}
			if word := doorWords.FindString(text); word != "" {
				t.Errorf("%s: %q has %q", set.Position(literal.Pos()), text, word)
			}
			return true
		})
	}
	return checked
}
