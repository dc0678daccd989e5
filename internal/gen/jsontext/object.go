package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Object is a JSON object with its members in order.
type Object struct{ members []member }

type member struct {
	name  string
	value any // an *Object, a list of them or of strings, or what encoding/json writes on one line
}

// Add appends a member.
func (o *Object) Add(name string, value any) *Object {
	o.members = append(o.members, member{name, value})
	return o
}

// Indent is how much deeper the members of an object stand.
const Indent = 2

const width = 150

// Text writes o: on one line, if that ends within the width. column is where it begins, at the
// indentation of depth.
func (o *Object) Text(depth, column int) []byte {
	if line := o.line(); column+len(line) <= width {
		return line
	}
	return o.Lines(depth)
}

// Lines writes o with a line for each member.
func (o *Object) Lines(depth int) []byte {
	var b bytes.Buffer
	b.WriteString("{\n")
	inner := depth + Indent
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
	case *Object:
		return v.Text(depth, column)
	case []string:
		return list(v, depth, column)
	case []*Object:
		return list(v, depth, column)
	}
	return lineOf(v)
}

// list writes a list: on one line, if that ends within the width.
func list[T any](v []T, depth, column int) []byte {
	line := lineOf(v)
	if column+len(line) <= width {
		return line
	}
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, x := range v {
		b.WriteString(strings.Repeat(" ", depth+Indent))
		b.Write(valueText(x, depth+Indent, depth+Indent+1))
		if i < len(v)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString(strings.Repeat(" ", depth) + "]")
	return b.Bytes()
}

func (o *Object) line() []byte {
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
	case *Object:
		return v.line()
	case []*Object:
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
