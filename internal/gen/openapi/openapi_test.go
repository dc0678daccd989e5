package openapi

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/gen/model"
)

func TestReplace(t *testing.T) {
	m := &model.Model{
		Scalars: []*model.Scalar{{
			Name: "Key", Doc: "A path.", Kind: model.String, Limits: model.Limits{Max: &model.Limit{Value: 512}},
		}},
		Messages: []*model.Message{{Name: "Ask", Fields: []model.Field{
			{Go: "Key", Name: "key", Type: model.Type{Kind: model.String, Name: "Key"}},
			{
				Go: "Mode", Name: "mode", Doc: "a < b & c", Optional: true, Type: model.Type{Kind: model.String},
				Limits: model.Limits{Enum: []string{"x", "y"}},
			},
		}}},
	}
	const head = `{
  "paths": {"/": {}},
  "components": {
    "schemas": `
	before := head + `{
      "Ask": {"type": "null"},
      "Other":   {"type":"string"}
    }
  }
}
`
	want := head + `{
      "Key": {"type": "string", "description": "A path.", "maxLength": 512},
      "Ask": {
        "type": "object",
        "properties": {"key": {"$ref": "#/components/schemas/Key"}, "mode": {"type": "string", "description": "a < b & c", "enum": ["x", "y"]}},
        "required": ["key"],
        "additionalProperties": false
      }
    }
  }
}
`
	for range 2 { // the second time nothing changes
		got, err := replace([]byte(before), m)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		before = string(got)
	}
	if _, err := replace([]byte(strings.Replace(before, "schemas", "other", 1)), m); err == nil {
		t.Error("a document without schemas is accepted")
	}
}
