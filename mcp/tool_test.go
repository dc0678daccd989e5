package mcp

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

// countTokens counts as the models of today do.
func countTokens(t testing.TB, text string) int {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	n, err := codec.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A client hands the model each tool's name, description and input schema.
func TestTokensOfTheDefinitions(t *testing.T) {
	sum := 0
	for _, d := range definitions {
		text, err := json.Marshal(struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"input_schema"`
		}{d.name, d.description, json.RawMessage(d.schema)})
		if err != nil {
			t.Fatal(err)
		}
		n := countTokens(t, string(text))
		t.Logf("%s: %d tokens", d.name, n)
		sum += n
	}
	t.Logf("all: %d tokens", sum)
	if sum > 1500 {
		t.Errorf("the definitions have %d tokens, want at most 1,500", sum)
	}
	if n := utf8.RuneCountInString(Instructions); n > 512 {
		t.Errorf("the instructions have %d characters, want at most 512", n)
	}
}
