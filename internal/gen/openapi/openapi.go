package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/jsontext"
	"github.com/interlockdev/interlock/internal/gen/model"
	"github.com/interlockdev/interlock/internal/gen/source"
)

// Name is the document.
const Name = "server/openapi.json"

// nesting is the depth of the name of a schema.
const nesting = 6

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
	schemas := &jsontext.Object{}
	for _, s := range m.Scalars {
		schemas.Add(s.Name, scalarSchema(s))
	}
	for _, msg := range m.Messages {
		if !msg.Part {
			schemas.Add(msg.Name, messageSchema(m, msg))
		}
	}
	return bytes.Replace(doc, old, schemas.Lines(nesting-jsontext.Indent), 1), nil
}

func scalarSchema(s *model.Scalar) *jsontext.Object {
	o := &jsontext.Object{}
	if len(s.Types) > 0 {
		o.Add("type", jsonTypes(s.Types))
	} else if s.Kind != model.Any {
		o.Add("type", typeNames[s.Kind])
	}
	describe(o, s.Doc)
	if s.Pattern != "" {
		o.Add("pattern", s.Pattern)
	}
	if s.Format != "" {
		o.Add("format", s.Format)
	}
	limit(o, s.Kind, &s.Limits)
	return o
}

// jsonTypes is the value of the keyword type.
func jsonTypes(names []string) any {
	if len(names) == 1 {
		return names[0]
	}
	return names
}

func messageSchema(m *model.Model, msg *model.Message) *jsontext.Object {
	o := (&jsontext.Object{}).Add("type", "object")
	describe(o, either(msg))
	properties := &jsontext.Object{}
	required := []string{}
	for i := range msg.Fields {
		f := &msg.Fields[i]
		properties.Add(f.Name, fieldSchema(m, f))
		if !f.Optional {
			required = append(required, f.Name)
		}
	}
	o.Add("properties", properties)
	if len(required) > 0 {
		o.Add("required", required)
	}
	return o.Add("additionalProperties", false)
}

// either is the description of a message with the fields that exclude each other. The keyword oneOf of
// required fields would be exact, but generators of clients make a value of any kind of such a schema.
func either(msg *model.Message) string {
	if len(msg.One) == 0 {
		return msg.Doc
	}
	return strings.TrimSpace(msg.Doc + " Exactly one of " + strings.Join(msg.One, " and ") + " is there.")
}

func fieldSchema(m *model.Model, f *model.Field) *jsontext.Object {
	doc := withDefault(f)
	if f.Types != nil {
		o := &jsontext.Object{}
		o.Add("type", jsonTypes(f.Types))
		describe(o, doc)
		return o
	}
	return typeSchema(m, f.Type, doc, &f.Limits)
}

// withDefault is the description of a field with its default. The keyword default would make generated clients
// send the value, also where it excludes another field, and make the field mandatory in their types.
func withDefault(f *model.Field) string {
	if f.Default == nil {
		return f.Doc
	}
	return strings.TrimSpace(fmt.Sprintf("%s Default: %v.", f.Doc, f.Default))
}

func typeSchema(m *model.Model, t model.Type, doc string, limits *model.Limits) *jsontext.Object {
	o := &jsontext.Object{}
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
		o.Add("type", typeNames[t.Kind])
		describe(o, doc)
		limit(o, t.Kind, &own)
	case name != "" && doc == "":
		o.Add("$ref", "#/components/schemas/"+name)
	case name != "":
		o.Add("allOf", []*jsontext.Object{(&jsontext.Object{}).Add("$ref", "#/components/schemas/"+name)})
		describe(o, doc)
	case t.Kind == model.List:
		o.Add("type", "array")
		o.Add("items", typeSchema(m, *t.Elem, "", &model.Limits{Min: limits.ItemMin, Max: limits.ItemMax}))
		describe(o, doc)
		limit(o, t.Kind, limits)
	case t.Kind == model.Any:
		describe(o, doc)
	default:
		o.Add("type", typeNames[t.Kind])
		describe(o, doc)
		limit(o, t.Kind, limits)
	}
	return o
}

var typeNames = map[model.Kind]string{
	model.String: "string", model.Bool: "boolean", model.Int: "integer", model.Decimal: "string", model.Time: "string",
}

func describe(o *jsontext.Object, doc string) {
	if doc != "" {
		o.Add("description", doc)
	}
}

// limit adds the members that bound a value.
func limit(o *jsontext.Object, kind model.Kind, l *model.Limits) {
	least, most := "minimum", "maximum"
	switch kind {
	case model.String:
		least, most = "minLength", "maxLength"
	case model.List:
		least, most = "minItems", "maxItems"
	}
	if kind == model.Bool && len(l.Enum) > 0 {
		o.Add("const", l.Enum[0] == "true")
	} else if len(l.Enum) == 1 {
		o.Add("const", l.Enum[0])
	} else if len(l.Enum) > 0 {
		o.Add("enum", l.Enum)
	}
	if l.Min != nil {
		o.Add(least, l.Min.Value)
	}
	if l.Max != nil {
		o.Add(most, l.Max.Value)
	}
}
