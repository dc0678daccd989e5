package journal

import (
	"fmt"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/source"
)

// tag is the tag of a field.
type tag struct {
	number  int
	later   bool // +number: see the package's comment
	options map[string]string
}

// has reports whether the tag has an option.
func (t *tag) has(option string) bool {
	_, ok := t.options[option]
	return ok
}

// taggedField is a field of a struct with its tag.
type taggedField struct {
	source.Field
	tag
	inner bool // an embedded struct without a number: its fields count as those of the outer struct
}

// parse reads a tag, and refuses options that are not in allowed.
func parse(text string, allowed []string) (t tag, err error) {
	number, rest, more := strings.Cut(text, ",")
	plain := strings.TrimPrefix(number, "+")
	t.later = plain != number
	if t.number, err = strconv.Atoi(plain); err != nil || t.number < 0 {
		return t, fmt.Errorf("it begins with %q, want a number", number)
	}
	if !more {
		return t, nil
	}
	t.options = map[string]string{}
	for _, option := range strings.Split(rest, ",") {
		name, value, _ := strings.Cut(option, "=")
		if !slices.Contains(allowed, name) {
			return t, fmt.Errorf("%q is no option", option)
		}
		t.options[name] = value
	}
	return t, nil
}

// scheme is a set of tags: their key, the options that they may have, and those of the structs of
// package interlock.
type scheme struct {
	key     string
	options []string
	table   map[string]map[string]string
}

// fields returns the fields of a struct that have a number, and its embedded structs without one. A
// field without a tag is an error, unless it is not exported.
func (m *scheme) fields(s *source.Struct) (list []taggedField, err error) {
	table, root := m.table[s.Name], s.Package.Folder == "."
	for name := range table {
		if root && s.Field(name) == nil {
			return nil, fmt.Errorf("%s: %s is in the table of tags, and the struct has no such field", s.Name, name)
		}
	}
	for _, f := range s.Fields {
		text, ok := f.Tag.Lookup(m.key)
		if root {
			text, ok = table[f.Name]
		}
		switch {
		case text == "-":
		case ok:
			t, err := parse(text, m.options)
			if err != nil {
				return nil, fmt.Errorf("%s.%s: the tag %s: %w", s.Name, f.Name, m.key, err)
			}
			list = append(list, taggedField{Field: f, tag: t})
		case f.Embedded && !root:
			list = append(list, taggedField{Field: f, inner: true})
		case types.NewVar(0, nil, f.Name, nil).Exported():
			return nil, fmt.Errorf("%s.%s has no tag %s: give it a number, or - to leave it out", s.Name, f.Name, m.key)
		}
	}
	return list, nil
}

// pointee returns what typ points to, and whether it is a pointer.
func pointee(typ types.Type) (types.Type, bool) {
	if p, ok := typ.Underlying().(*types.Pointer); ok {
		return p.Elem(), true
	}
	return typ, false
}

// isStruct reports whether typ is a struct.
func isStruct(typ types.Type) bool {
	_, ok := typ.Underlying().(*types.Struct)
	return ok
}

// kind sorts the types of single values.
type kind int

const (
	other kind = iota
	text
	blob // []byte
	flag
	number
	id    // [16]byte
	array // of bytes, of another length
)

// kindOf returns the kind of a type.
func kindOf(typ types.Type) kind {
	isByte := func(t types.Type) bool { return types.Identical(t, types.Typ[types.Byte]) }
	switch t := typ.Underlying().(type) {
	case *types.Basic:
		switch {
		case t.Kind() == types.String:
			return text
		case t.Kind() == types.Bool:
			return flag
		case t.Info()&types.IsInteger != 0:
			return number
		}
	case *types.Slice:
		if isByte(t.Elem()) {
			return blob
		}
	case *types.Array:
		if isByte(t.Elem()) && t.Len() == 16 {
			return id
		}
		if isByte(t.Elem()) {
			return array
		}
	}
	return other
}

// asText and asNumber spell the conversion of a value of type typ to string and to uint64.
func asText(typ types.Type, value string) string {
	return converted("string", typ, types.Typ[types.String], value)
}

func asNumber(typ types.Type, value string) string {
	return converted("uint64", typ, types.Typ[types.Uint64], value)
}
