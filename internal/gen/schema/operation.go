package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/jsontext"
)

// document has the operations.
const document = "server/openapi.json"

// operation is an operation of OpenAPI, as far as server/openapi.json has any.
type operation struct {
	OperationID string
	Tags        []string
	Summary     string
	Description string
	Parameters  []parameter
	RequestBody *struct {
		Required bool
		Content  members
	}
	Responses members
	Security  *[]json.RawMessage
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      property
}

// property is the schema of a parameter, a header or a body.
type property struct {
	Ref                  string `json:"$ref"`
	Type, Format         string
	Pattern              string
	Enum                 []string
	Minimum, Maximum     *int64
	MinLength, MaxLength *int64
	MaxItems             *int64
	Default              any
	Items                *property
	OneOf                []property
}

// media is one content type of a body or an answer.
type media struct {
	Schema  property
	Example json.RawMessage
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     members
	Headers     members
}

// members are those of a JSON object, in order.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

func (m *members) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		*m = append(*m, member{name.(string), value})
	}
	return nil
}

// read decodes a part of the document. A keyword that it has no place for is an error.
func read(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// components are what operations refer to.
type components struct {
	Parameters map[string]json.RawMessage
	Headers    map[string]json.RawMessage
}

func operationsOf(doc []byte) (list []*jsontext.Object, err error) {
	var d struct {
		Paths      members
		Components components
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, err
	}
	for _, path := range d.Paths {
		var methods members
		if err := read(path.value, &methods); err != nil {
			return nil, err
		}
		for _, method := range methods {
			var op operation
			if err = read(method.value, &op); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method.name, path.name, err)
			}
			o := (&jsontext.Object{}).Add("id", op.OperationID).Add("group", strings.Join(op.Tags, " ")).
				Add("method", strings.ToUpper(method.name)).Add("path", path.name).Add("summary", op.Summary)
			describe(o, op.Description)
			o.Add("credential", op.Security == nil)
			if err = d.Components.complete(o, &op); err != nil {
				return nil, fmt.Errorf("%s: %w", op.OperationID, err)
			}
			list = append(list, o)
		}
	}
	return list, nil
}

// complete adds the parameters, the body and the answers of an operation. Of several content types of a
// body, the first one counts.
func (c *components) complete(o *jsontext.Object, op *operation) error {
	parameters := []*jsontext.Object{}
	for _, p := range op.Parameters {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			if err := read(c.Parameters[name], &p); err != nil {
				return err
			}
		}
		x := (&jsontext.Object{}).Add("name", p.Name).Add("in", p.In)
		if err := p.Schema.add(x); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if !p.Required {
			x.Add("optional", true)
		}
		parameters = append(parameters, describe(x, p.Description))
	}
	o.Add("parameters", parameters)
	if body := op.RequestBody; body != nil {
		content := body.Content[0]
		var m media
		if err := read(content.value, &m); err != nil {
			return err
		}
		x := &jsontext.Object{}
		if err := m.Schema.add(x); err != nil {
			return err
		}
		x.Add("content_type", content.name)
		if !body.Required {
			x.Add("optional", true)
		}
		o.Add("body", x)
	}
	return c.answers(o, op)
}

// answers adds what an operation answers: types of success, and the statuses of problems.
func (c *components) answers(o *jsontext.Object, op *operation) error {
	answers, errors := []*jsontext.Object{}, []int{}
	for _, r := range op.Responses {
		var answer response
		if err := read(r.value, &answer); err != nil {
			return err
		}
		status, err := strconv.Atoi(r.name)
		if err != nil {
			return err
		}
		if answer.Ref != "" {
			errors = append(errors, status)
			continue
		}
		x := (&jsontext.Object{}).Add("status", status)
		describe(x, answer.Description)
		if len(answer.Content) > 0 {
			if err := content(x, answer.Content[0]); err != nil {
				return err
			}
		}
		headers := []*jsontext.Object{}
		for _, h := range answer.Headers {
			var header parameter
			if err := read(h.value, &header); err != nil {
				return err
			}
			if name, ok := strings.CutPrefix(header.Ref, "#/components/headers/"); ok {
				if err := read(c.Headers[name], &header); err != nil {
					return err
				}
			}
			y := (&jsontext.Object{}).Add("name", h.name)
			if err := header.Schema.add(y); err != nil {
				return err
			}
			headers = append(headers, describe(y, header.Description))
		}
		if len(headers) > 0 {
			x.Add("headers", headers)
		}
		answers = append(answers, x)
	}
	o.Add("answers", answers).Add("errors", errors)
	return nil
}

// content adds the first content type of an answer, and its types.
func content(o *jsontext.Object, c member) error {
	var m media
	if err := read(c.value, &m); err != nil {
		return err
	}
	o.Add("content_type", c.name)
	var names []string
	for _, s := range append([]property{m.Schema}, m.Schema.OneOf...) {
		if s.OneOf != nil {
			continue
		}
		name, err := s.name()
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	o.Add("types", names)
	if c.name == "application/x-ndjson" {
		o.Add("stream", true)
	}
	return nil
}

// add adds a type and its limits.
func (s *property) add(o *jsontext.Object) error {
	single := s
	if s.Items != nil {
		single = s.Items
	}
	name, err := single.name()
	if err != nil {
		return err
	}
	o.Add("type", name)
	if s.Items != nil {
		o.Add("list", true)
	}
	if s.Default != nil {
		o.Add("default", s.Default)
	}
	for _, x := range []struct {
		name  string
		limit *int64
	}{
		{"min", s.Minimum},
		{"max", s.Maximum},
		{"min_length", s.MinLength},
		{"max_length", s.MaxLength},
		{"max_items", s.MaxItems},
	} {
		if x.limit != nil {
			o.Add(x.name, *x.limit)
		}
	}
	addText(o, "pattern", s.Pattern)
	addTexts(o, "enum", s.Enum)
	return nil
}

// name is the type of a value.
func (s *property) name() (string, error) {
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/components/schemas/"), nil
	case s.Type == "string" && s.Format == "binary":
		return "bytes", nil
	case s.Type == "string", s.Type == "integer", s.Type == "boolean":
		return s.Type, nil
	case s.Type == "", s.Type == "object":
		return "json", nil
	}
	return "", fmt.Errorf("there is no type for %s", s.Type)
}
