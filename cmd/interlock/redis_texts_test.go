//go:build unix

package main

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

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// The port for programs of Redis speaks their words: its texts name no routes and fields of other APIs, and each
// command of interlock that they name exists, with its flags.
func TestRedisPortTexts(t *testing.T) {
	files, err := filepath.Glob("../../resp/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var (
		foreign = regexp.MustCompile(`/v1/|\b(GET|POST|PUT) /|on_conflict|[a-z]_ms\b|(?i)\bheader\b|If-Match`)
		command = regexp.MustCompile(`interlock ([a-z]+(?: (?:--)?[a-zA-Z0-9-]+)*)`)
		prose   = []string{"is", "runs", "has", "sends", "answers"} // about Interlock
		texts   = 0
		named   = 0
	)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			e, isExpr := n.(ast.Expr)
			text, isText := "", false
			if isExpr {
				text, isText = joined(e)
			}
			if !isText {
				return true
			}
			texts++
			if found := foreign.FindString(text); found != "" {
				t.Errorf("%s: %q is a word of another API: %s", file, found, text)
			}
			for _, m := range command.FindAllStringSubmatch(text, -1) {
				words := strings.Fields(m[1])
				if slices.Contains(prose, words[0]) {
					continue
				}
				named++
				cmd, rest, err := newRoot(cli.NewApp(nil)).Find(words)
				if err != nil || !cmd.HasParent() || cmd.HasSubCommands() && len(rest) > 0 {
					t.Errorf("%s: there is no command %q", file, m[1])
				} else if err := cmd.ParseFlags(flagsIn(rest)); err != nil {
					t.Errorf("%s: %q: %v", file, m[1], err)
				}
			}
			return false
		})
	}
	if texts < 50 || named < 5 {
		t.Errorf("%d texts and %d commands", texts, named)
	}
}

// flagsIn returns the flags in a command that is part of a sentence, with the word behind each.
func flagsIn(words []string) (flags []string) {
	for i, word := range words {
		if strings.HasPrefix(word, "--") && word != "--" {
			flags = append(flags, words[i:min(i+2, len(words))]...)
		}
	}
	return flags
}

// joined returns the text that literals make, one added to the other.
func joined(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		left, isLeft := joined(e.X)
		right, isRight := joined(e.Y)
		return left + right, e.Op == token.ADD && isLeft && isRight
	}
	return "", false
}
