package stream

import (
	"fmt"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/source"
)

// Emit returns the codec of the stream: one file for each .proto file.
func Emit(tree *source.Tree) (map[string][]byte, error) {
	schema, err := readSchema(tree, "proto", "model.proto", "task.proto", "session.proto")
	if err != nil {
		return nil, err
	}
	proto, err := tree.Package("proto")
	if err != nil {
		return nil, err
	}
	p := &plan{
		tree: tree, schema: schema, proto: proto, codecs: map[string]*codec{}, enums: map[string]*types.Named{},
		used: map[string]bool{},
	}
	for _, name := range []string{root, goAway, union} {
		s := proto.Struct(name)
		switch {
		case s == nil:
			return nil, fmt.Errorf("package proto has no struct %s", name)
		case name == union:
			p.addUnion(name, s)
		default:
			p.add(name, s.Type).spread(true, false, false)
		}
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, from := range schema.files {
		w := &writer{File: source.NewFile(proto, from.name)}
		n := 0
		for _, m := range from.messages {
			c := p.codecs[m.name]
			if c == nil {
				continue // of a frame
			}
			n++
			switch {
			case m.name == union:
				w.union(p, c)
			case c.goType.Name == union:
				w.body(c)
			default:
				w.message(c)
			}
		}
		if n == 0 {
			continue
		}
		if w.err != nil {
			return nil, w.err
		}
		name := path.Join(proto.Folder, strings.TrimSuffix(path.Base(from.name), ".proto")+"_gen.go")
		if files[name], err = w.Text(); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// writer writes the functions of messages to a file.
type writer struct {
	*source.File
	err error
}

func (w *writer) fail(c *codec, f *place, format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(
			"%s: field %s of message %s: %s", c.message.file.name, f.name, c.message.name, fmt.Sprintf(format, args...),
		)
	}
}

func (w *writer) message(c *codec) {
	typ := w.Type(c.goType.Type)
	name := c.message.name
	w.P("")
	w.P("func append%s(b []byte, num byte, x *%s) []byte {", name, typ)
	w.P("b = openMessage(b, num)")
	w.P("start := len(b)")
	for _, f := range c.fields {
		w.appendField(c, f)
	}
	w.P("return closeMessage(b, start)")
	w.P("}")
	w.decoder(c, typ)
}

// body writes the functions of an operation's body. The caller opens the message, with the
// operation's kind as its number.
func (w *writer) body(c *codec) {
	name := c.message.name
	if len(c.fields) == 0 {
		return
	}
	w.P("")
	w.P("func append%s(b []byte, x *%s) []byte {", name, union)
	for _, f := range c.fields {
		w.appendField(c, f)
	}
	w.P("return b")
	w.P("}")
	w.decoder(c, union)
}

// union writes the kinds of operations, and the functions that lead to their bodies.
func (w *writer) union(p *plan, c *codec) {
	m := c.message
	first, last := m.oneof[0], m.oneof[len(m.oneof)-1]
	kind := func(f *protoField) string { return union + goName(f.name) }
	w.P("")
	w.P("// The kinds of operations, with the numbers of their bodies in message %s.", union)
	w.P("const (")
	for _, f := range m.oneof {
		w.P("%s %sKind = %d", kind(f), union, f.number)
	}
	w.P("")
	w.P("lastOp = %s", kind(last))
	w.P(")")
	w.P("")
	w.P("func append%s(b []byte, num byte, x *%s) []byte {", union, union)
	w.P("b = openMessage(b, num)")
	w.P("start := len(b)")
	for _, f := range c.fields {
		w.appendField(c, f)
	}
	w.P("b = openMessage(b, byte(x.Kind))")
	w.P("body := len(b)")
	w.P("switch x.Kind {")
	var empty []string
	for _, f := range m.oneof {
		if len(p.codecs[f.kind].fields) == 0 {
			empty = append(empty, kind(f))
			continue
		}
		w.P("case %s:", kind(f))
		w.P("b = append%s(b, x)", f.kind)
	}
	if len(empty) > 0 {
		w.P("case %s:", strings.Join(empty, ", "))
	}
	w.P("default:")
	w.P("panic(\"proto: an operation without a kind\")")
	w.P("}")
	w.P("b = closeMessage(b, body)")
	w.P("return closeMessage(b, start)")
	w.P("}")

	w.P("")
	w.P("func decode%s(x *%s, s []byte) error {", union, union)
	w.P("var body []byte")
	w.P("for len(s) > 0 {")
	w.P("f, rest, err := nextField(s)")
	w.P("if err != nil {\nreturn err\n}")
	w.P("s = rest")
	w.P("switch f.tag {")
	for _, f := range c.fields {
		w.decodeField(c, f, "string(f.s)")
	}
	w.P("default:")
	w.P("num := f.tag >> 3")
	w.P("if f.tag&7 != wireBytes || num < uint64(%s) || num > uint64(%s) {", kind(first), "lastOp")
	w.P("continue")
	w.P("}")
	w.P("if x.Kind != 0 {")
	w.P("return badFrame(\"an operation has two bodies\")")
	w.P("}")
	w.P("x.Kind, body = %sKind(num), f.s", union)
	w.P("}")
	w.P("}")
	w.P("switch x.Kind {")
	for _, f := range m.oneof {
		inner := p.codecs[f.kind]
		switch {
		case len(inner.fields) == 0:
			continue
		case inner.own:
			w.P("case %s:", kind(f))
			if inner.holds != "" {
				w.holds(inner)
			}
			w.P("return decode%s(x, body)", f.kind)
		default:
			w.P("case %s:", kind(f))
			if inner.holds != "" {
				w.holds(inner)
			}
			w.P("return decode%s(x, string(body))", f.kind)
		}
	}
	w.P("}")
	w.P("return skip(body)")
	w.P("}")
}

// holds writes the allocation of the part of the union for a body.
func (w *writer) holds(c *codec) {
	part := c.goType.Field(c.holds)
	w.P("x.%s = &%s{}", c.holds, w.Type(element(part.Type)))
}

// decoder writes the loop over the fields of a message.
func (w *writer) decoder(c *codec, typ string) {
	name := c.message.name
	text := "f.s"
	w.P("")
	switch {
	case c.shared && c.own:
		w.P("func decode%s[B byteSeq](x *%s, s B) error {", name, typ)
		text = "string(f.s)"
	case c.own:
		w.P("func decode%s(x *%s, s []byte) error {", name, typ)
		text = "string(f.s)"
	default:
		w.P("func decode%s(x *%s, s string) error {", name, typ)
	}
	w.P("for len(s) > 0 {")
	w.P("f, rest, err := nextField(s)")
	w.P("if err != nil {\nreturn err\n}")
	w.P("s = rest")
	w.P("switch f.tag {")
	for _, f := range c.fields {
		w.decodeField(c, f, text)
	}
	w.P("}")
	if slices.ContainsFunc(c.fields, func(f *place) bool { return f.inner != nil || w.kind(c, f).checked() }) {
		w.P("if err != nil {\nreturn err\n}")
	}
	w.P("}")
	w.P("return nil")
	w.P("}")
}

// at spells the place of a field in the function that appends it.
func (f *place) at() string {
	s := "x"
	for _, step := range f.path {
		s += "." + step.name
	}
	return s
}

// into spells it in the function that decodes it, where it allocates what may be missing.
func (f *place) into() string {
	s := "x"
	for _, step := range f.path {
		s += "." + step.name
		if step.optional {
			s = "allocated(&" + s + ")"
		}
	}
	return s
}

// appendField writes what appends a field.
func (w *writer) appendField(c *codec, f *place) {
	at := f.at()
	var lines []string
	if f.inner != nil {
		lines = w.appendInner(c, f, at)
	} else if line := w.appendScalar(c, f, at); line != "" {
		lines = []string{line}
	}
	guard := f.rule.when
	for _, s := range f.path[:len(f.path)-1] {
		if s.optional {
			guard = "x." + s.name + " != nil"
		}
	}
	if guard != "" {
		lines = append(append([]string{"if " + guard + " {"}, lines...), "}")
	}
	for _, line := range lines {
		w.P("%s", line)
	}
}

// appendInner returns the lines that append a message or a list of messages.
func (w *writer) appendInner(c *codec, f *place, at string) []string {
	call := func(pointer string) string {
		return fmt.Sprintf("b = append%s(b, %d, %s)", f.inner.message.name, f.number, pointer)
	}
	switch f.typ.Underlying().(type) {
	case *types.Slice: // also of a single message: the list then has one element
		return []string{"for i := range " + at + " {", call("&" + at + "[i]"), "}"}
	case *types.Pointer:
		if f.repeated {
			break
		}
		return []string{"if " + at + " != nil {", call(at), "}"}
	case *types.Struct:
		if f.repeated {
			break
		}
		return []string{call("&" + at)}
	}
	w.fail(c, f, "has the Go type %s", f.typ)
	return nil
}

// appendScalar returns the line that appends a number or text, or a list of them.
func (w *writer) appendScalar(c *codec, f *place, at string) string {
	n := f.number
	switch k := w.kind(c, f); k {
	case kindString:
		return fmt.Sprintf("b = appendString(b, %d, %s)", n, at)
	case kindStrings:
		return fmt.Sprintf("b = appendTexts(b, %d, %s)", n, at)
	case kindBytes:
		return fmt.Sprintf("b = appendBytes(b, %d, %s)", n, at)
	case kindOptionalBytes:
		return fmt.Sprintf("if %s != nil {\nb = appendText(b, %d, %s)\n}", at, n, at)
	case kindID:
		return fmt.Sprintf("b = appendID(b, %d, %s)", n, array(f.typ, 16, "&"+at))
	case kindIDs:
		return fmt.Sprintf("for i := range %s {\nb = appendText(b, %d, %s[i][:])\n}", at, n, at)
	case kindDigest:
		return fmt.Sprintf("b = appendDigest(b, %d, %s)", n, array(f.typ, 32, "&"+at))
	case kindBool:
		return fmt.Sprintf("b = appendBool(b, %d, %s)", n, at)
	case kindDuration:
		return fmt.Sprintf("b = appendDuration(b, %d, %s)", n, at)
	case kindInt:
		return fmt.Sprintf("b = appendInt(b, %d, %s)", n, at)
	case kindSmallInt:
		return fmt.Sprintf("b = appendUint(b, %d, uint64(uint32(%s)))", n, at)
	case kindUint32, kindEnum:
		return fmt.Sprintf("b = appendUint(b, %d, uint64(%s))", n, at)
	case kindUint64:
		if _, named := f.typ.(*types.Named); named {
			at = "uint64(" + at + ")"
		}
		return fmt.Sprintf("b = appendUint(b, %d, %s)", n, at)
	case kindEnums:
		return fmt.Sprintf("b = appendEnums(b, %d, %s)", n, at)
	case kindSint:
		return fmt.Sprintf("b = appendSint(b, %d, int32(%s))", n, at)
	case kindSint64:
		return fmt.Sprintf("if %s != 0 {\nb = appendSint64(b, %d, %s)\n}", at, n, at)
	case kindOptionalSint64:
		return fmt.Sprintf("if %s != nil {\nb = appendSint64(b, %d, *%s)\n}", at, n, at)
	}
	return ""
}

// array converts a pointer to an array of bytes with a name of its own.
func array(t types.Type, size int, pointer string) string {
	if _, named := t.(*types.Named); named {
		return fmt.Sprintf("(*[%d]byte)(%s)", size, pointer)
	}
	return pointer
}

// decodeField writes the case of a field.
func (w *writer) decodeField(c *codec, f *place, text string) {
	into := f.into()
	if f.inner != nil {
		w.P("case %d<<3 | wireBytes:", f.number)
		w.decodeInner(c, f, into)
		return
	}
	k := w.kind(c, f)
	line := ""
	switch k {
	case kindString:
		line = fmt.Sprintf("err = text(&%s, %s)", into, text)
	case kindStrings:
		line = fmt.Sprintf("err = text(grow(&%s), %s)", into, text)
	case kindBytes:
		line = fmt.Sprintf("%s = ownBytes(f.s)", into)
	case kindOptionalBytes:
		line = fmt.Sprintf("%s = append([]byte{}, f.s...) // not nil, even if it is empty", into)
	case kindID:
		line = fmt.Sprintf("err = id(&%s, f.s)", into)
	case kindIDs:
		line = fmt.Sprintf("err = id(grow(&%s), f.s)", into)
	case kindDigest:
		line = fmt.Sprintf("err = digest(&%s, f.s)", into)
	case kindBool:
		line = fmt.Sprintf("%s = f.v != 0", into)
	case kindDuration, kindInt, kindUint64:
		if f.typ == types.Typ[types.Uint64] {
			line = fmt.Sprintf("%s = f.v", into)
		} else {
			line = fmt.Sprintf("%s = %s(f.v)", into, w.Type(f.typ))
		}
	case kindSmallInt:
		line = fmt.Sprintf("%s = int(uint32(f.v))", into)
	case kindUint32:
		if f.rule.wraps {
			line = fmt.Sprintf("%s = uint32(f.v)", into)
		} else {
			line = fmt.Sprintf("%s = count(f.v)", into)
		}
	case kindEnum:
		line = fmt.Sprintf("%s = enum[%s](f.v)", into, w.Type(f.typ))
	case kindEnums:
		// A list of numbers comes in one piece or in several.
		w.P("case %d<<3 | wireBytes:", f.number)
		w.P("err = packedEnums(&%s, f.s)", into)
		line = fmt.Sprintf("%s = append(%s, enum[%s](f.v))", into, into, w.Type(element(f.typ)))
	case kindSint:
		line = fmt.Sprintf("%s = int(unzigzag(f.v))", into)
	case kindSint64:
		line = fmt.Sprintf("%s = unzigzag64(f.v)", into)
	case kindOptionalSint64:
		line = fmt.Sprintf("%s = new(unzigzag64(f.v))", into)
	}
	w.P("case %d<<3 | %s:", f.number, k.wire())
	w.bounded(c, f, into, line)
}

// bounded writes a line that adds to a list, under the condition that there is room.
func (w *writer) bounded(c *codec, f *place, into string, lines ...string) {
	bound := f.rule.bound
	if bound == "" && c.asked && f.repeated {
		bound = "MaxListed"
	}
	if bound != "" {
		w.P("if len(%s) <= %s {", into, bound)
	}
	for _, line := range lines {
		w.P("%s", line)
	}
	if bound != "" {
		w.P("}")
	}
}

func (w *writer) decodeInner(c *codec, f *place, into string) {
	bytes := "f.s"
	if f.rule.cloned {
		w.Import("strings")
		bytes = "strings.Clone(f.s)"
	}
	call := func(pointer string) string {
		return fmt.Sprintf("err = decode%s(%s, %s)", f.inner.message.name, pointer, bytes)
	}
	elem := w.Type(element(f.typ))
	_, list := f.typ.Underlying().(*types.Slice)
	_, pointer := f.typ.Underlying().(*types.Pointer)
	switch {
	case list && !f.repeated:
		w.P("%s = make([]%s, 1)", into, elem)
		w.P("%s", call("&"+into+"[0]"))
	case list && f.rule.flat:
		last := f.path[len(f.path)-1].name
		w.bounded(c, f, into, "each := grow(&"+into+")", call("each"), "each."+last+" = nil // one level is all there is")
	case list:
		if f.rule.counted {
			w.P("if %s == nil {", into)
			w.P("%s = make([]%s, 0, 1+countFields(s, f.tag))", into, elem)
			w.P("}")
		}
		w.bounded(c, f, into, call("grow(&"+into+")"))
	case pointer:
		w.P("%s = &%s{}", into, elem)
		w.P("%s", call(into))
	default:
		w.P("%s", call("&"+into))
	}
}
