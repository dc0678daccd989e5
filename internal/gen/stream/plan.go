package stream

import (
	"errors"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/source"
)

// plan pairs each message with its Go struct, and each field with its place in the struct.
type plan struct {
	tree   *source.Tree
	schema *schema
	proto  *source.Package
	codecs map[string]*codec       // by message
	enums  map[string]*types.Named // by enum
	used   map[string]bool         // entries of the tables that were needed
	errs   []error
}

// codec is a message with its Go struct.
type codec struct {
	message *message
	goType  *source.Struct
	fields  []*place
	holds   string // of a body, the part of the union that its decoder allocates; "" for none

	shared bool // it is decoded from a string, and its texts become parts of that string
	own    bool // it is decoded from bytes, and each text becomes a copy
	asked  bool // a client sends it, so its lists are bounded
}

// place is a field of a message and where it stands in the struct.
type place struct {
	*protoField
	path  []step
	typ   types.Type
	inner *codec // of a message type
	rule  fieldRule
}

// step is one selector of a path.
type step struct {
	name string
	// optional marks a pointer that may be nil while the fields behind it have no value.
	optional bool
	typ      types.Type
}

func (p *plan) failf(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

// add plans a message on a struct, and all messages in it.
func (p *plan) add(messageName string, typ types.Type) *codec {
	goType, err := p.tree.Struct(typ)
	if err != nil {
		p.failf("message %s: %w", messageName, err)
		return nil
	}
	if c := p.codecs[messageName]; c != nil {
		if c.goType != goType {
			p.failf("message %s stands for %s and for %s", messageName, c.goType.Name, goType.Name)
		}
		return c
	}
	c := p.match(&codec{message: p.schema.messages[messageName], goType: goType})
	p.covered(goType, c)
	return c
}

// addUnion plans the message of an operation, and its bodies on the same struct.
func (p *plan) addUnion(messageName string, goType *source.Struct) {
	m := p.schema.messages[messageName]
	c := p.match(&codec{message: m, goType: goType})
	all := []*codec{c}
	for i, f := range m.oneof {
		if f.number != m.oneof[0].number+i {
			p.failf(
				"%s: the bodies of message %s are not numbered one after the other: %s is %d", m.file.name, messageName, f.name,
				f.number,
			)
		}
		body := p.match(&codec{message: p.schema.messages[f.kind], goType: goType, holds: bodies[f.kind]})
		if body.holds != "" {
			p.used["body "+f.kind] = true
		}
		isOwn := slices.Contains(own, f.kind)
		if isOwn {
			p.used["own "+f.kind] = true
		}
		body.spread(!isOwn, isOwn, true)
		all = append(all, body)
	}
	p.covered(goType, all...)
}

// match finds the struct field of each field of a message, and returns c.
func (p *plan) match(c *codec) *codec {
	p.codecs[c.message.name] = c
	for _, f := range c.message.fields {
		name := c.message.name + "." + f.name
		x := &place{protoField: f}
		goPath, given := paths[name]
		switch {
		case given:
			p.used["path "+name] = true
		case c.holds != "" && p.lookup(c.goType, c.holds+"."+goName(f.name)) != nil:
			goPath = c.holds + "." + goName(f.name)
		default:
			goPath = goName(f.name)
		}
		steps := p.lookup(c.goType, goPath)
		if steps == nil {
			p.failf(
				"%s: field %s of message %s has no field %s in %s: add it in %s", c.message.file.name, f.name,
				c.message.name, goPath, c.goType.Name, p.tree.File(c.goType),
			)
			continue
		}
		for i := range steps[:len(steps)-1] {
			_, pointer := steps[i].typ.Underlying().(*types.Pointer)
			steps[i].optional = pointer && steps[i].name != c.holds
		}
		x.path, x.typ = steps, steps[len(steps)-1].typ
		if r, ok := fieldRules[name]; ok {
			p.used["rule "+name] = true
			x.rule = r
		}
		if p.schema.messages[f.kind] != nil {
			x.inner = p.add(f.kind, element(x.typ))
		} else if e := p.schema.enums[f.kind]; e != nil {
			p.matchEnum(e, element(x.typ))
		}
		c.fields = append(c.fields, x)
	}
	return c
}

// matchEnum compares the numbers of an enum with the exported constants of its Go type. An enum
// and a type may each have a 0 that the other has no name for.
func (p *plan) matchEnum(e *enum, typ types.Type) {
	named, ok := typ.(*types.Named)
	if !ok || p.enums[e.name] == named {
		return
	}
	if p.enums[e.name] != nil {
		p.failf("enum %s stands for %s and for %s", e.name, p.enums[e.name].Obj().Name(), named.Obj().Name())
		return
	}
	p.enums[e.name] = named
	constants, err := p.tree.Constants(named)
	if err != nil {
		p.failf("enum %s: %w", e.name, err)
		return
	}
	numbers := map[int64]bool{}
	for _, c := range constants {
		n, _ := constant.Int64Val(c.Value)
		if !token.IsExported(c.Name) || n == 0 {
			continue
		}
		numbers[n] = true
		if !slices.Contains(e.numbers, n) {
			p.failf("enum %s has no number %d, which is %s", e.name, n, c.Name)
		}
	}
	for _, n := range e.numbers {
		if n != 0 && !numbers[n] {
			p.failf("%s has no constant %d, which enum %s has", named.Obj().Name(), n, e.name)
		}
	}
}

// element is what a list or a pointer is of, or else the type itself.
func element(t types.Type) types.Type {
	switch u := t.Underlying().(type) {
	case *types.Slice:
		return u.Elem()
	case *types.Pointer:
		return u.Elem()
	}
	return t
}

// lookup follows a path of selectors, or returns nil. A promoted field is one step.
func (p *plan) lookup(s *source.Struct, goPath string) (steps []step) {
	typ := types.Type(s.Type)
	for name := range strings.SplitSeq(goPath, ".") {
		found, _, _ := types.LookupFieldOrMethod(typ, true, p.proto.Types, name)
		v, ok := found.(*types.Var)
		if !ok {
			return nil
		}
		steps = append(steps, step{name: name, typ: v.Type()})
		typ = v.Type()
	}
	return steps
}

// covered reports the fields of a struct that none of the messages on it has.
func (p *plan) covered(s *source.Struct, codecs ...*codec) {
	messageName := codecs[0].message.name
	whole, entered := map[string]bool{}, map[string]bool{}
	for _, c := range codecs {
		for _, f := range c.fields {
			at := fullPath(s.Type, f.path)
			whole[strings.Join(at, ".")] = true
			for i := 1; i < len(at); i++ {
				entered[strings.Join(at[:i], ".")] = true
			}
		}
	}
	var visit func(t types.Type, prefix string)
	visit = func(t types.Type, prefix string) {
		body, ok := element(t).Underlying().(*types.Struct)
		if !ok {
			return
		}
		for v := range body.Fields() {
			at := prefix + v.Name()
			name := messageName + "." + at
			switch {
			case whole[at]:
			case entered[at]:
				visit(v.Type(), at+".")
			case unsent[name] != "":
				p.used["unsent "+name] = true
			default:
				p.failf(
					"%s.%s: message %s has no such field: add it in %s, or name it with the reason why not in "+
						"internal/gen/stream/table.go, then run make generate",
					s.Name, at, messageName, p.schema.messages[messageName].file.name,
				)
			}
		}
	}
	visit(s.Type, "")
}

// fullPath is a path with the embedded structs that it goes through.
func fullPath(t types.Type, path []step) (full []string) {
	for _, s := range path {
		_, index, _ := types.LookupFieldOrMethod(t, true, nil, s.name)
		for _, i := range index {
			v := element(t).Underlying().(*types.Struct).Field(i)
			full = append(full, v.Name())
			t = v.Type()
		}
	}
	return full
}

// spread marks how a message and those in it are decoded.
func (c *codec) spread(shared, own, asked bool) {
	if c == nil || (c.shared || !shared) && (c.own || !own) && (c.asked || !asked) {
		return
	}
	c.shared, c.own, c.asked = c.shared || shared, c.own || own, c.asked || asked
	for _, f := range c.fields {
		f.inner.spread(shared, own, asked)
	}
}

// finish reports what is left of the tables.
func (p *plan) finish() error {
	entries := map[string]bool{}
	for name := range paths {
		entries["path "+name] = true
	}
	for name := range fieldRules {
		entries["rule "+name] = true
	}
	for name := range unsent {
		entries["unsent "+name] = true
	}
	for name := range bodies {
		entries["body "+name] = true
	}
	for _, name := range own {
		entries["own "+name] = true
	}
	for _, entry := range slices.Sorted(maps.Keys(entries)) {
		if !p.used[entry] {
			p.failf("table.go: the %s is not needed", entry)
		}
	}
	return errors.Join(p.errs...)
}

// goName is the Go name of a field: max_hold is MaxHold.
func goName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		switch word {
		case "id", "ttl", "eta":
			b.WriteString(strings.ToUpper(word))
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
