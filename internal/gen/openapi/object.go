package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/model"
)

// object is a JSON object with its members in order.
type object struct{ members []member }

type member struct {
	name  string
	value any // an *object, a list of them, or what encoding/json writes on one line
}

func (o *object) add(name string, value any) *object {
	o.members = append(o.members, member{name, value})
	return o
}

func (o *object) describe(doc string) {
	if doc != "" {
		o.add("description", doc)
	}
}

// limit adds the members that bound a value.
func (o *object) limit(kind model.Kind, l *model.Limits) {
	least, most := "minimum", "maximum"
	switch kind {
	case model.String:
		least, most = "minLength", "maxLength"
	case model.List:
		least, most = "minItems", "maxItems"
	}
	if kind == model.Bool && len(l.Enum) > 0 {
		o.add("const", l.Enum[0] == "true")
	} else if len(l.Enum) == 1 {
		o.add("const", l.Enum[0])
	} else if len(l.Enum) > 0 {
		o.add("enum", l.Enum)
	}
	if l.Min != nil {
		o.add(least, l.Min.Value)
	}
	if l.Max != nil {
		o.add(most, l.Max.Value)
	}
}

const (
	indent  = 2
	nesting = 6 // of the name of a schema
	width   = 150
)

// text writes o: on one line, if that ends within the width. column is where it begins, at the
// indentation of depth.
func (o *object) text(depth, column int) []byte {
	if line := o.line(); column+len(line) <= width {
		return line
	}
	return o.lines(depth)
}

// lines writes o with a line for each member.
func (o *object) lines(depth int) []byte {
	var b bytes.Buffer
	b.WriteString("{\n")
	inner := depth + indent
	for i, m := range o.members {
		head := fmt.Sprintf("%s%q: ", strings.Repeat(" ", inner), m.name)
		b.WriteString(head)
		b.Write(valueText(m.value, inner, len(head)+1))
		if i < len(o.members)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString(strings.Repeat(" ", depth) + "}")
	return b.Bytes()
}

func valueText(v any, depth, column int) []byte {
	switch v := v.(type) {
	case *object:
		return v.text(depth, column)
	case []string:
		line := lineOf(v)
		if column+len(line) <= width {
			return line
		}
		var b bytes.Buffer
		b.WriteString("[\n")
		for i, s := range v {
			fmt.Fprintf(&b, "%s%s", strings.Repeat(" ", depth+indent), lineOf(s))
			if i < len(v)-1 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString(strings.Repeat(" ", depth) + "]")
		return b.Bytes()
	}
	return lineOf(v)
}

func (o *object) line() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: %s", m.name, lineOf(m.value))
	}
	b.WriteByte('}')
	return b.Bytes()
}

func lineOf(v any) []byte {
	var b bytes.Buffer
	switch v := v.(type) {
	case *object:
		return v.line()
	case []*object:
		b.WriteByte('[')
		for i, o := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			b.Write(o.line())
		}
		b.WriteByte(']')
	case []string:
		b.WriteByte('[')
		for i, s := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			b.Write(lineOf(s))
		}
		b.WriteByte(']')
	default:
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // strings, numbers and booleans
		b.Truncate(b.Len() - 1)
	}
	return b.Bytes()
}
