package journal

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/source"
)

const commands = "engine"

// printer emits fingerprints.
type printer struct {
	tree *source.Tree
	file *source.File
	// later are the fields that the first version of the current command did not have.
	later []addition
	// helpers are the structs that have a function of their own, in the order of their use.
	helpers []*source.Struct
}

// addition is a field that is added after all others, with its number, and only if it is set.
type addition struct {
	number int
	name   string
	typ    types.Type
	list   string // the list, if it is a field of its elements
}

// emitFingerprints returns the fingerprints of the commands: the structs with a number at Head.
func emitFingerprints(tree *source.Tree) ([]byte, error) {
	pkg, err := tree.Package(commands)
	if err != nil {
		return nil, err
	}
	w := &printer{tree: tree, file: source.NewFile(pkg, "the tags of commands and the table in internal/gen/journal")}
	w.file.Import(tree.Module + "/" + folder)
	numbers := map[int]string{}
	for _, s := range pkg.Structs() {
		head := s.Field("Head")
		if head == nil || !head.Embedded || head.Tag.Get(fingerprints.key) == "" {
			continue
		}
		t, err := parse(head.Tag.Get(fingerprints.key), nil)
		if err != nil {
			return nil, fmt.Errorf("%s.Head: the tag %s: %w", s.Name, fingerprints.key, err)
		}
		if numbers[t.number] != "" {
			return nil, fmt.Errorf("%s and %s have the number %d", numbers[t.number], s.Name, t.number)
		}
		numbers[t.number] = s.Name
		if err := w.command(s, t.number); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(w.helpers); i++ {
		s := w.helpers[i]
		w.file.P("\n// print%s adds x to a fingerprint.", s.Name)
		w.file.P("func print%s(p *record.Fingerprint, x *%s) {", s.Name, w.file.Type(s.Type))
		if err := w.fields(s, "x", "", ""); err != nil {
			return nil, err
		}
		if len(w.later) > 0 {
			return nil, fmt.Errorf("%s: + is for the body of a command", s.Name)
		}
		w.file.P("}")
	}
	return w.file.Text()
}

func (w *printer) command(s *source.Struct, number int) error {
	w.later = nil
	w.file.P("\nfunc (c *%s) fingerprint() uint64 {\nvar p record.Fingerprint\np.Number(%d)", s.Name, number)
	if err := w.fields(s, "c", "&", ""); err != nil {
		return err
	}
	slices.SortFunc(w.later, func(a, b addition) int { return a.number - b.number })
	for i, x := range w.later {
		if x.number != i+1 {
			return fmt.Errorf("%s: %s has the number +%d, want +%d", s.Name, x.name, x.number, i+1)
		}
		if err := w.addition(&x); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	w.file.P("return uint64(p)\n}")
	return nil
}

// fields emits the fields of a struct with the place at, in their order, without the one called
// skip. address is "&" where p is a Fingerprint, and no pointer to one.
func (w *printer) fields(s *source.Struct, at, address, skip string) error {
	all, err := fingerprints.fields(s)
	if err != nil {
		return err
	}
	var list []taggedField
	for _, f := range all {
		switch {
		case f.Name == "Head", f.Name == skip:
		case f.inner:
			return fmt.Errorf("%s.%s has no tag %s", s.Name, f.Name, fingerprints.key)
		case f.later:
			w.later = append(w.later, addition{number: f.number, name: at + "." + f.Name, typ: f.Type})
		default:
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b taggedField) int { return a.number - b.number })
	for place := 1; len(list) > 0; place++ {
		n := 1
		for n < len(list) && list[n].number == list[0].number {
			n++
		}
		if list[0].number != place {
			return fmt.Errorf("%s.%s has the number %d, want %d", s.Name, list[0].Name, list[0].number, place)
		}
		if list[0].has("bit") {
			err = w.flags(list[:n], at, address)
		} else if n > 1 {
			err = fmt.Errorf("%s has its number, too", list[1].Name)
		} else {
			err = w.field(s, &list[0], at, address)
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", s.Name, list[0].Name, err)
		}
		list = list[n:]
	}
	return nil
}

// flags emits the fields that are bits of one number, and the values of those that are pointers.
func (w *printer) flags(list []taggedField, at, address string) error {
	bits := make([]string, len(list))
	for i, f := range list {
		if f.options["bit"] != fmt.Sprint(i) {
			return fmt.Errorf("%s is not bit %d", f.Name, i)
		}
		bits[i] = at + "." + f.Name
		if _, points := pointee(f.Type); points {
			bits[i] += " != nil"
		} else if kindOf(f.Type) != flag {
			return fmt.Errorf("%s is no flag", f.Name)
		}
	}
	w.file.P("p.Flags(%s)", strings.Join(bits, ", "))
	for _, f := range list {
		target, points := pointee(f.Type)
		if !points {
			continue
		}
		name := at + "." + f.Name
		w.file.P("if %s != nil {", name)
		if isStruct(target) {
			if err := w.helper(target, name, address); err != nil {
				return err
			}
		} else if err := w.single(target, "*"+name, ""); err != nil {
			return err
		}
		w.file.P("}")
	}
	return nil
}

// field emits one field.
func (w *printer) field(s *source.Struct, f *taggedField, at, address string) error {
	name := at + "." + f.Name
	list, isList := f.Type.Underlying().(*types.Slice)
	if f.has("blank") {
		w.file.P("p.Text(\"\")")
	}
	switch {
	case f.has("stored"):
		w.file.P("p.Bytes(record.%s(nil, &%s))", f.options["stored"], name)
		return nil
	case f.has("omitzero"):
		return w.unlessZero(f.Type, name)
	case isStruct(f.Type) && f.Embedded:
		inner, err := w.tree.Struct(f.Type)
		if err != nil {
			return err
		}
		for _, x := range inner.Fields {
			if s.Field(x.Name) != nil {
				return fmt.Errorf("%s is declared again outside", x.Name)
			}
		}
		return w.fields(inner, at, address, "")
	case isStruct(f.Type):
		return w.helper(f.Type, "&"+name, address)
	case isList && kindOf(f.Type) != blob:
		return w.list(f, list.Elem(), name, address)
	}
	return w.single(f.Type, name, f.options["default"])
}

// list emits the number of the elements, unless it is left out, and the elements.
func (w *printer) list(f *taggedField, elem types.Type, name, address string) error {
	if !f.has("bare") {
		w.file.P("p.Number(uint64(len(%s)))", name)
	}
	if !isStruct(elem) {
		w.file.P("for _, v := range %s {", name)
		err := w.single(elem, "v", "")
		w.file.P("}")
		return err
	}
	w.file.P("for i := range %s {", name)
	defer w.file.P("}")
	if !f.has("Count") {
		return w.helper(elem, "&"+name+"[i]", address)
	}
	s, err := w.tree.Struct(elem)
	if err != nil {
		return err
	}
	count := s.Field("Count")
	if count == nil {
		return fmt.Errorf("%s has no field Count", s.Name)
	}
	t, err := parse(f.options["Count"], nil)
	if err != nil {
		return err
	}
	w.later = append(w.later, addition{number: t.number, name: "Count", typ: count.Type, list: name})
	return w.fields(s, name+"[i]", address, "Count")
}

// helper emits a call of the function for a struct, which x points to.
func (w *printer) helper(typ types.Type, x, address string) error {
	s, err := w.tree.Struct(typ)
	if err != nil {
		return err
	}
	if !slices.Contains(w.helpers, s) {
		for _, known := range w.helpers {
			if known.Name == s.Name {
				return fmt.Errorf("two structs are called %s", s.Name)
			}
		}
		w.helpers = append(w.helpers, s)
	}
	w.file.P("print%s(%sp, %s)", s.Name, address, x)
	return nil
}

// single emits a value. fallback is the constant that a zero value stands for, or "".
func (w *printer) single(typ types.Type, name, fallback string) error {
	if fallback != "" {
		w.file.Import("cmp")
		w.file.Import(w.tree.Module)
		name = "cmp.Or(" + name + ", interlock." + fallback + ")"
	}
	switch kindOf(typ) {
	case text:
		w.file.P("p.Text(%s)", asText(typ, name))
	case blob:
		w.file.P("p.Bytes(%s)", name)
	case number:
		w.file.P("p.Number(%s)", asNumber(typ, name))
	case id:
		w.file.P("p.ID(%s)", name)
	case array:
		w.file.P("p.Bytes(%s[:])", name)
	default:
		return fmt.Errorf("nothing adds the type %s", typ)
	}
	return nil
}

// unlessZero emits a value that is left out if it is zero.
func (w *printer) unlessZero(typ types.Type, name string) error {
	switch kindOf(typ) {
	case flag:
		w.file.P("if %s {\np.Flags(true)", name)
	case number:
		w.file.P("if %s != 0 {\np.Number(%s)", name, asNumber(typ, name))
	case text:
		w.file.P("if %s != \"\" {\np.Text(%s)", name, asText(typ, name))
	default:
		return fmt.Errorf("nothing leaves out the type %s", typ)
	}
	w.file.P("}")
	return nil
}

// addition emits a field that the first version did not have.
func (w *printer) addition(x *addition) error {
	if x.list != "" {
		w.file.P("for i := range %s {", x.list)
		x.name = x.list + "[i]." + x.name
		defer w.file.P("}")
	}
	switch kindOf(x.typ) {
	case flag:
		w.file.P("if %s {\np.Addition(%d, 1)\n}", x.name, x.number)
	case number:
		w.file.P("p.Addition(%d, %s)", x.number, asNumber(x.typ, x.name))
	case text:
		w.file.P("if %s != \"\" {\np.Addition(%d, 1)\np.Text(%s)\n}", x.name, x.number, asText(x.typ, x.name))
	case id:
		w.file.P("if %s != [16]byte{} {\np.Addition(%d, 1)\np.ID(%s)\n}", x.name, x.number, x.name)
	default:
		return fmt.Errorf("%s: nothing adds the type %s", x.name, x.typ)
	}
	return nil
}
