package model

import (
	"cmp"
	"fmt"
	"go/constant"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/gen/source"
)

// Folder is where the definition is.
const Folder = "internal/api"

// Model has all messages and scalars, in the order of the source.
type Model struct {
	Messages []*Message
	Scalars  []*Scalar
}

// Message is a JSON object.
type Message struct {
	Name   string
	Doc    string
	Fields []Field  // those of embedded structs in their place
	One    []string // optional fields: exactly one of them is there
	Part   bool     // it is embedded in other messages, and no value of its own
}

// Scalar is a kind of value with a name and a schema of its own.
type Scalar struct {
	Name string
	Doc  string
	Kind Kind
	Limits
	// Members of its schema that no field has.
	Pattern, Format string
	Unit            string   // of a number: ms
	Types           []string // the JSON types of a value that has several
}

// Field is a member of a message.
type Field struct {
	Go       string // its name in Go
	Name     string // its name in JSON
	Doc      string
	Type     Type
	Optional bool
	Types    []string // the JSON types of a value of any kind, if it is limited to some
	Text     string   // of a text that agents or people wrote: "line" or "lines"
	Default  any      // what counts when it is left out: an int64 or a string; nil: not one value
	Unit     string   // of a number, if its type has none
	Limits
}

// Limits bound a value: a number, the length of a string, or of a list.
type Limits struct {
	Min, Max *Limit
	// ItemMin and ItemMax bound the strings of a list.
	ItemMin, ItemMax *Limit
	Enum             []string // the words that a string can be
}

// Limit is a number, as it was written and as it is.
type Limit struct {
	Text  string // a number, or the name of a constant of the root package, with or without a sign
	Value int64  // of a duration, in milliseconds
}

// Type is the type of a field.
type Type struct {
	Kind Kind
	Name string // of the scalar or the message
	Elem *Type  // of a list
}

// Kind is what a value is in JSON.
type Kind uint8

const (
	String Kind = 1 + iota
	Bool
	Int
	Decimal // a counter: a string of decimal digits
	Time
	Any // any JSON value
	List
	Object // the message Type.Name
)

// Message returns the message with a name, or nil.
func (m *Model) Message(name string) *Message {
	i := slices.IndexFunc(m.Messages, func(x *Message) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return m.Messages[i]
}

// Scalar returns the scalar with a name, or nil.
func (m *Model) Scalar(name string) *Scalar {
	i := slices.IndexFunc(m.Scalars, func(x *Scalar) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return m.Scalars[i]
}

// Load reads the definition.
func Load(tree *source.Tree) (*Model, error) {
	pkg, err := tree.Package(Folder)
	if err != nil {
		return nil, err
	}
	root, err := tree.Package(".")
	if err != nil {
		return nil, err
	}
	l := &loader{tree: tree, root: root, pkg: pkg, embedded: map[string]bool{}}
	if l.declared, err = declarations(tree.Root, Folder); err != nil {
		return nil, err
	}
	m := &Model{}
	for _, d := range l.declared {
		switch {
		case d.alias:
			s, err := l.scalar(d)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.name, err)
			}
			m.Scalars = append(m.Scalars, s)
		case pkg.Struct(d.name) != nil && isMessage(pkg.Struct(d.name)):
			msg := &Message{Name: d.name, Doc: d.doc}
			for _, x := range d.directives {
				switch x.name {
				case "one":
					msg.One = strings.Split(x.value, ",")
				case "name":
					msg.Name = x.value
				}
			}
			if msg.Fields, err = l.fields(pkg.Struct(d.name)); err != nil {
				return nil, fmt.Errorf("%s.%w", d.name, err)
			}
			msg.Fields = l.require(d.name, msg.Fields)
			m.Messages = append(m.Messages, msg)
		}
	}
	m.findParts(l.embedded)
	return m, nil
}

// findParts marks the messages that are embedded, and neither the type of a field nor a request.
func (m *Model) findParts(embedded map[string]bool) {
	used := map[string]bool{}
	for _, msg := range m.Messages {
		for _, f := range msg.Fields {
			used[f.Type.Name] = true
			if f.Type.Elem != nil {
				used[f.Type.Elem.Name] = true
			}
		}
	}
	for _, msg := range m.Messages {
		msg.Part = embedded[msg.Name] && !used[msg.Name] && !strings.HasSuffix(msg.Name, "Request")
	}
}

// isMessage reports whether a struct is a JSON object: all its fields have JSON names.
func isMessage(s *source.Struct) bool {
	for _, f := range s.Fields {
		if f.Tag.Get("json") == "" && !f.Embedded || f.Type == nil {
			return false
		}
	}
	return true
}

type loader struct {
	tree      *source.Tree
	root, pkg *source.Package
	declared  []declaration
	embedded  map[string]bool
}

func (l *loader) fields(s *source.Struct) (list []Field, err error) {
	for _, f := range s.Fields {
		if f.Embedded {
			inner := l.pkg.Struct(f.Name)
			if inner == nil {
				return nil, fmt.Errorf("%s: is no struct of %s", f.Name, Folder)
			}
			embedded, err := l.fields(inner)
			if err != nil {
				return nil, err
			}
			embedded = l.require(f.Name, embedded)
			l.embedded[f.Name] = true
			list = append(list, embedded...)
			continue
		}
		x := Field{Go: f.Name, Doc: sentence(f.Doc)}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		x.Name = name
		x.Optional = strings.Contains(options, "omitempty")
		if x.Type, err = l.typeOf(f.Type, strings.Contains(options, "string")); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, limit := range []struct {
			tag string
			to  **Limit
		}{{"min", &x.Min}, {"max", &x.Max}, {"itemmin", &x.ItemMin}, {"itemmax", &x.ItemMax}} {
			if text := f.Tag.Get(limit.tag); text != "" {
				if *limit.to, err = l.limit(text); err != nil {
					return nil, fmt.Errorf("%s: %w", f.Name, err)
				}
			}
		}
		if words := f.Tag.Get("enum"); words != "" {
			x.Enum = strings.Split(words, ",")
		}
		x.Text, x.Unit = f.Tag.Get("text"), f.Tag.Get("unit")
		if text := f.Tag.Get("default"); text != "" && x.Type.Kind == String {
			x.Default = text
		} else if text != "" {
			value, err := l.limit(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			x.Default = value.Value
		}
		if types := f.Tag.Get("type"); types != "" {
			x.Types = strings.Split(types, ",")
		}
		list = append(list, x)
	}
	return list, nil
}

// require makes the fields that the message requires mandatory.
func (l *loader) require(message string, fields []Field) []Field {
	for _, d := range l.declared {
		for _, x := range d.directives {
			if d.name != message || x.name != "required" {
				continue
			}
			names := strings.Split(x.value, ",")
			for i := range fields {
				if slices.Contains(names, fields[i].Name) {
					fields[i].Optional = false
				}
			}
		}
	}
	return fields
}

// typeOf returns the type of a field. quoted is that of a number that is written as a string.
func (l *loader) typeOf(t types.Type, quoted bool) (Type, error) {
	switch x := t.(type) {
	case *types.Pointer:
		return l.typeOf(x.Elem(), quoted)
	case *types.Slice:
		elem, err := l.typeOf(x.Elem(), false)
		return Type{Kind: List, Elem: &elem}, err
	case *types.Alias:
		if x.Obj().Pkg() == l.pkg.Types {
			kind, err := kindOf(types.Unalias(t))
			return Type{Kind: kind, Name: x.Obj().Name()}, err
		}
		return l.typeOf(types.Unalias(t), quoted)
	case *types.Named:
		if x.Obj().Pkg() == l.pkg.Types && l.pkg.Struct(x.Obj().Name()) != nil {
			return Type{Kind: Object, Name: x.Obj().Name()}, nil
		}
	}
	kind, err := kindOf(t)
	if quoted && kind == Int {
		kind = Decimal
	}
	return Type{Kind: kind}, err
}

func kindOf(t types.Type) (Kind, error) {
	switch t.String() {
	case "time.Time":
		return Time, nil
	case "encoding/json.RawMessage":
		return Any, nil
	}
	if basic, ok := t.Underlying().(*types.Basic); ok {
		switch {
		case basic.Info()&types.IsBoolean != 0:
			return Bool, nil
		case basic.Info()&types.IsInteger != 0:
			return Int, nil
		case basic.Info()&types.IsString != 0:
			return String, nil
		}
	}
	return 0, fmt.Errorf("the type %s has no kind", t)
}

// limit reads a number, or a constant of the root package.
func (l *loader) limit(text string) (*Limit, error) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return &Limit{Text: text, Value: v}, nil
	}
	name, negative := strings.CutPrefix(text, "-")
	c, ok := l.root.Types.Scope().Lookup(name).(*types.Const)
	if !ok {
		return nil, fmt.Errorf("limit %s is neither a number nor a constant of the root package", text)
	}
	v, ok := constant.Int64Val(constant.ToInt(c.Val()))
	if !ok {
		return nil, fmt.Errorf("limit %s is no whole number", text)
	}
	if c.Type().String() == "time.Duration" {
		v /= int64(time.Millisecond)
	}
	if negative {
		v = -v
	}
	return &Limit{Text: text, Value: v}, nil
}

func (l *loader) scalar(d declaration) (*Scalar, error) {
	object := l.pkg.Types.Scope().Lookup(d.name)
	if object == nil {
		return nil, fmt.Errorf("is not declared")
	}
	kind, err := kindOf(types.Unalias(object.Type()))
	if err != nil {
		return nil, err
	}
	s := &Scalar{Name: d.name, Doc: d.doc, Kind: kind}
	for _, x := range d.directives {
		switch x.name {
		case "pattern":
			s.Pattern = x.value
		case "format":
			s.Format = x.value
		case "unit":
			s.Unit = x.value
		case "type":
			s.Types = strings.Split(x.value, ",")
		case "enum":
			s.Enum = append(s.Enum, strings.Split(x.value, ",")...)
		case "constants":
			s.Enum, err = l.constants(x.value)
		case "min":
			s.Min, err = l.limit(x.value)
		case "max":
			s.Max, err = l.limit(x.value)
		default:
			err = fmt.Errorf("there is no directive schema:%s", x.name)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// constants returns the values of the constants of a string type of the root package.
func (l *loader) constants(typeName string) (words []string, err error) {
	for _, c := range l.root.Constants(typeName) {
		if c.Value.Kind() != constant.String {
			return nil, fmt.Errorf("%s is no string", c.Name)
		}
		words = append(words, constant.StringVal(c.Value))
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("type %s of the root package has no constants", typeName)
	}
	return words, nil
}

// Or joins words for a sentence: "wait, fail or skip".
func Or(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// compareDeclarations orders declarations as the source has them.
func compareDeclarations(a, b declaration) int {
	return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
}
