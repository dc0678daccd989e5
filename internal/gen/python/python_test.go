package python

import (
	"strings"
	"testing"
)

// The classes of an object separate what is required from what is not, and spell keywords as texts.
func TestTypes(t *testing.T) {
	got := string(types(&file{Types: []object{
		{Name: "Key", Kind: "value", Type: "string", Description: "A path."},
		{Name: "Word", Kind: "words", Values: []string{"a", "b"}},
		{Name: "All", Kind: "object", Fields: []field{{Name: "key", Type: "Key"}}},
		{Name: "Some", Kind: "object", Description: "Some.", Fields: []field{
			{Name: "key", Type: "Key"},
			{Name: "list", Type: "decimal", List: true, Optional: true},
			{Name: "yield", Type: "json", Optional: true},
		}},
		{Name: "Empty", Kind: "object"},
	}}))
	for _, want := range []string{
		"# A path.\nKey = str\n", "\nWord = Literal[\"a\", \"b\"]\n", "\n\n\nclass All(TypedDict):\n    key: Key\n",
		"\nclass _SomeRequired(TypedDict):\n    key: Key\n",
		"_SomeKeywords = TypedDict(\n    \"_SomeKeywords\",\n    {\n        \"yield\": \"Any\",\n    },\n    total=False,\n)\n",
		"# Some.\nclass Some(_SomeRequired, _SomeKeywords, total=False):\n    list: list[str]\n",
		"class Empty(TypedDict, total=False):\n    pass\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestConstant(t *testing.T) {
	for name, want := range map[string]string{
		"MaxClaims": "MAX_CLAIMS", "MaxTTL": "MAX_TTL", "MinTTL": "MIN_TTL", "MaxURLBytes": "MAX_URL_BYTES",
		"MaxRequestIDs": "MAX_REQUEST_IDS",
	} {
		if got := constant(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
