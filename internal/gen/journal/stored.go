package journal

import (
	"fmt"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/source"
)

// value is one field of a stored value, by its number in the list.
type value struct {
	number int
	name   string // its place: "x.Quota.Keys"; of an element's field, below the element
	typ    types.Type
	tag    tag
	of     string   // of a pointer to another stored value, its name
	elem   []*value // of a list of structs, the fields of an element; the first begins it
}

// codec is what the functions of one stored value are made from.
type codec struct {
	name   string
	typ    types.Type
	fields []*value
	based  bool // it has times, so the functions take the time that they count from
}

// emitStored returns the codecs of the values that events have as bytes.
func emitStored(tree *source.Tree) ([]byte, error) {
	pkg, err := tree.Package(folder)
	if err != nil {
		return nil, err
	}
	codecs := map[string]*codec{}
	for _, x := range stored {
		from, err := tree.Package(x.folder)
		if err != nil {
			return nil, err
		}
		s := from.Struct(x.name)
		if s == nil {
			return nil, fmt.Errorf("%s has no struct %s", x.folder, x.name)
		}
		if codecs[x.name], err = readCodec(tree, s); err != nil {
			return nil, err
		}
	}
	file := source.NewFile(pkg, "the tags of engine/record and the table in internal/gen/journal")
	for _, x := range stored {
		c := codecs[x.name]
		for _, f := range c.fields {
			if f.of == "" {
				continue
			}
			inner := codecs[f.of]
			if inner == nil {
				return nil, fmt.Errorf("%s.%s: %s has no codec", x.name, f.name, f.of)
			}
			c.based = c.based || inner.based
		}
	}
	for _, x := range stored {
		if err := codecs[x.name].write(file, codecs); err != nil {
			return nil, err
		}
	}
	return file.Text()
}

// readCodec reads the tags of a stored value and of the structs in it.
func readCodec(tree *source.Tree, s *source.Struct) (*codec, error) {
	c := &codec{name: strings.ToUpper(s.Name[:1]) + s.Name[1:], typ: s.Type}
	var err error
	if c.fields, err = valuesOf(tree, s, "x", 0); err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.fields, func(a, b *value) int { return a.number - b.number })
	taken := map[int]string{}
	for _, f := range c.fields {
		all := []*value{f}
		if f.elem != nil {
			all = f.elem
		}
		for _, x := range all {
			if taken[x.number] != "" {
				return nil, fmt.Errorf("%s: %s and %s have the number %d", s.Name, taken[x.number], f.name, x.number)
			}
			taken[x.number] = f.name
		}
		c.based = c.based || f.tag.has("since")
	}
	return c, nil
}

// valuesOf returns the fields of a struct with the place at, numbered from first on.
func valuesOf(tree *source.Tree, s *source.Struct, at string, first int) (list []*value, err error) {
	fields, err := codecs.fields(s)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		x := &value{number: first + f.number, name: at + "." + f.Name, typ: f.Type, tag: f.tag}
		target, points := pointee(f.Type)
		list = append(list, x)
		switch elem, isList := f.Type.Underlying().(*types.Slice); {
		case f.later:
			return nil, fmt.Errorf("%s.%s: + is for fingerprints", s.Name, f.Name)
		case isStruct(target) && (f.inner || !points):
			inner, err := tree.Struct(target)
			if err != nil {
				return nil, err
			}
			place := x.name
			if f.Embedded {
				place = at
			}
			parts, err := valuesOf(tree, inner, place, x.number)
			if err != nil {
				return nil, err
			}
			list = append(list[:len(list)-1], parts...)
		case isStruct(target):
			x.of = target.(*types.Named).Obj().Name()
		case isList && isStruct(elem.Elem()):
			inner, err := tree.Struct(elem.Elem())
			if err != nil {
				return nil, err
			}
			if x.elem, err = valuesOf(tree, inner, "e", x.number); err != nil {
				return nil, err
			}
			slices.SortFunc(x.elem, func(a, b *value) int { return a.number - b.number })
			if x.elem[0].number != x.number || kindOf(x.elem[0].typ) != text {
				return nil, fmt.Errorf("%s.%s: an element must begin with a text that has the number 0", s.Name, f.Name)
			}
		}
	}
	return list, nil
}

func (c *codec) write(file *source.File, all map[string]*codec) error {
	typ, base := file.Type(c.typ), ""
	if c.based {
		base = ", base Time"
	}
	file.P("\n// append%s appends the fields of x that are not zero.", c.name)
	file.P("func append%s(b []byte, x *%s%s) []byte {\nf := fieldList{b}", c.name, typ, base)
	for _, f := range c.fields {
		if err := f.put(file, all); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	file.P("return f.bytes\n}")

	file.P("\n// read%s reads what append%s wrote.", c.name, c.name)
	file.P("func read%s(b []byte, x *%s%s) error {", c.name, typ, base)
	for _, f := range c.fields {
		if f.tag.has("since") && f.tag.has("always") {
			file.P("%s = base", f.name)
		}
	}
	file.P("r := fieldReader{rest: b}\nfor r.next() {\nswitch r.number {")
	for _, f := range c.fields {
		f.get(file, all)
	}
	file.P("default:\nr.fail(ErrNewer)\n}\n}")
	for _, f := range c.fields {
		if f.tag.has("required") {
			file.P("if %s == \"\" {\nr.malformed = true\n}", f.name)
		}
	}
	file.P("return r.end()\n}")
	return nil
}

// put emits the writer of a field.
func (f *value) put(file *source.File, all map[string]*codec) error {
	elem, isList := f.typ.Underlying().(*types.Slice)
	always := f.tag.has("always") || f.tag.has("required")
	switch k := kindOf(f.typ); {
	case f.tag.has("since") && always:
		file.P("f.value(%d, uint64(%s.Sub(base)))", f.number, f.name)
	case f.tag.has("since"):
		file.P("f.since(%d, %s, base)", f.number, f.name)
	case always && k == text:
		file.P("f.putText(%d, %s)", f.number, asText(f.typ, f.name))
	case always:
		return fmt.Errorf("%s: only texts and times are written always", f.name)
	case k == text:
		file.P("f.text(%d, %s)", f.number, asText(f.typ, f.name))
	case k == blob:
		file.P("f.blob(%d, %s)", f.number, f.name)
	case k == flag:
		file.P("f.flag(%d, %s)", f.number, f.name)
	case k == number:
		file.P("f.value(%d, %s)", f.number, asNumber(f.typ, f.name))
	case f.of != "":
		base := ""
		if all[f.of].based {
			base = ", base"
		}
		file.P("if %s != nil {\nf.blob(%d, append%s(nil, %s%s))\n}", f.name, f.number, f.of, f.name, base)
	case f.elem != nil:
		file.P("for i := range %s {\ne := &%s[i]", f.name, f.name)
		file.P("f.putText(%d, %s)", f.number, asText(f.elem[0].typ, f.elem[0].name))
		for _, part := range f.elem[1:] {
			if err := part.put(file, all); err != nil {
				return err
			}
		}
		file.P("}")
	case isList && kindOf(elem.Elem()) == text:
		file.P("for _, s := range %s {\nf.putText(%d, %s)\n}", f.name, f.number, asText(elem.Elem(), "s"))
	case isList && kindOf(elem.Elem()) == number:
		file.P("for _, n := range %s {\nf.value(%d, %s)\n}", f.name, f.number, asNumber(elem.Elem(), "n"))
	default:
		return fmt.Errorf("%s: nothing writes the type %s", f.name, f.typ)
	}
	return nil
}

// get emits the reader of a field.
func (f *value) get(file *source.File, all map[string]*codec) {
	file.P("case %d:", f.number)
	switch {
	case f.of != "":
		base := ""
		if all[f.of].based {
			base = ", base"
		}
		file.P("%s = new(%s)\nr.inner(read%s(r.bytes, %s%s))", f.name, f.of, f.of, f.name, base)
	case f.elem != nil:
		elem, begin := f.typ.Underlying().(*types.Slice).Elem(), f.elem[0]
		_, field, _ := strings.Cut(begin.name, ".")
		file.P("%s = append(%s, %s{%s: %s})", f.name, f.name, file.Type(elem), field, begin.read(file, begin.typ))
		for _, part := range f.elem[1:] {
			file.P("case %d:\nif e := last(&r, %s); e != nil {", part.number, f.name)
			part.assign(file)
			file.P("}")
		}
	default:
		f.assign(file)
	}
}

// assign emits the statement that sets a field to what was read.
func (f *value) assign(file *source.File) {
	if list, ok := f.typ.Underlying().(*types.Slice); ok && kindOf(f.typ) != blob {
		file.P("%s = append(%s, %s)", f.name, f.name, f.read(file, list.Elem()))
		return
	}
	file.P("%s = %s", f.name, f.read(file, f.typ))
}

// read spells the value of type typ that was read.
func (f *value) read(file *source.File, typ types.Type) string {
	if f.tag.has("since") {
		return "r.since(base)"
	}
	switch kindOf(typ) {
	case text:
		return converted(file.Type(typ), typ, types.Typ[types.String], "r.text()")
	case blob:
		return "r.blob()"
	case flag:
		return strconv.FormatBool(true)
	default:
		return converted(file.Type(typ), typ, types.Typ[types.Uint64], "r.value")
	}
}
