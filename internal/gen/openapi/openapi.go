package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/interlockdev/interlock/internal/gen/model"
	"github.com/interlockdev/interlock/internal/gen/source"
)

// Name is the document.
const Name = "server/openapi.json"

// Emit returns the document with the schemas of the model, and no others.
func Emit(tree *source.Tree) (map[string][]byte, error) {
	m, err := model.Load(tree)
	if err != nil {
		return nil, err
	}
	doc, err := os.ReadFile(filepath.Join(tree.Root, filepath.FromSlash(Name)))
	if err != nil {
		return nil, err
	}
	if doc, err = replace(doc, m); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return map[string][]byte{Name: doc}, nil
}

// replace puts the schemas of the model in the place of those in a document.
func replace(doc []byte, m *model.Model) ([]byte, error) {
	var parts struct {
		Components struct{ Schemas json.RawMessage }
	}
	if err := json.Unmarshal(doc, &parts); err != nil {
		return nil, err
	}
	old := parts.Components.Schemas
	if bytes.Count(doc, old) != 1 {
		return nil, errors.New("has no components.schemas")
	}
	schemas := &object{}
	for _, s := range m.Scalars {
		schemas.add(s.Name, scalarSchema(s))
	}
	for _, msg := range m.Messages {
		if !msg.Part {
			schemas.add(msg.Name, messageSchema(m, msg))
		}
	}
	return bytes.Replace(doc, old, schemas.lines(nesting-indent), 1), nil
}

func scalarSchema(s *model.Scalar) *object {
	o := &object{}
	if len(s.Types) > 0 {
		o.add("type", jsonTypes(s.Types))
	} else if s.Kind != model.Any {
		o.add("type", typeNames[s.Kind])
	}
	o.describe(s.Doc)
	if s.Pattern != "" {
		o.add("pattern", s.Pattern)
	}
	if s.Format != "" {
		o.add("format", s.Format)
	}
	o.limit(s.Kind, &s.Limits)
	return o
}

// jsonTypes is the value of the keyword type.
func jsonTypes(names []string) any {
	if len(names) == 1 {
		return names[0]
	}
	return names
}

func messageSchema(m *model.Model, msg *model.Message) *object {
	o := (&object{}).add("type", "object")
	o.describe(msg.Doc)
	properties := &object{}
	required := []string{}
	for i := range msg.Fields {
		f := &msg.Fields[i]
		properties.add(f.Name, fieldSchema(m, f))
		if !f.Optional {
			required = append(required, f.Name)
		}
	}
	o.add("properties", properties)
	if len(required) > 0 {
		o.add("required", required)
	}
	if len(msg.One) > 0 {
		var one []*object
		for _, name := range msg.One {
			one = append(one, (&object{}).add("required", []string{name}))
		}
		o.add("oneOf", one)
	}
	return o.add("additionalProperties", false)
}

func fieldSchema(m *model.Model, f *model.Field) *object {
	if f.Types != nil {
		o := &object{}
		o.add("type", jsonTypes(f.Types))
		o.describe(f.Doc)
		return o
	}
	return typeSchema(m, f.Type, f.Doc, &f.Limits)
}

func typeSchema(m *model.Model, t model.Type, doc string, limits *model.Limits) *object {
	o := &object{}
	name := t.Name
	if t.Kind == model.Decimal {
		name = "Decimal"
	} else if t.Kind == model.Time {
		name = "Time"
	}
	switch {
	case name != "" && (limits.Min != nil || limits.Max != nil || limits.Enum != nil) && t.Kind != model.Object:
		// A value of a named kind with limits of its own.
		own := *limits
		if s := m.Scalar(name); s != nil {
			if own.Min == nil {
				own.Min = s.Min
			}
			if own.Max == nil {
				own.Max = s.Max
			}
		}
		o.add("type", typeNames[t.Kind])
		o.describe(doc)
		o.limit(t.Kind, &own)
	case name != "" && doc == "":
		o.add("$ref", "#/components/schemas/"+name)
	case name != "":
		o.add("allOf", []*object{(&object{}).add("$ref", "#/components/schemas/"+name)})
		o.describe(doc)
	case t.Kind == model.List:
		o.add("type", "array")
		o.add("items", typeSchema(m, *t.Elem, "", &model.Limits{Min: limits.ItemMin, Max: limits.ItemMax}))
		o.describe(doc)
		o.limit(t.Kind, limits)
	case t.Kind == model.Any:
		o.describe(doc)
	default:
		o.add("type", typeNames[t.Kind])
		o.describe(doc)
		o.limit(t.Kind, limits)
	}
	return o
}

var typeNames = map[model.Kind]string{
	model.String: "string", model.Bool: "boolean", model.Int: "integer", model.Decimal: "string", model.Time: "string",
}
