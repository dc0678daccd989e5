package journal

import (
	"fmt"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/source"
)

const folder = "engine/record"

// Emit returns the codec of events, those of the values in them, and the fingerprints of commands.
func Emit(tree *source.Tree) (map[string][]byte, error) {
	events, err := emitEvents(tree)
	if err != nil {
		return nil, err
	}
	values, err := emitStored(tree)
	if err != nil {
		return nil, err
	}
	prints, err := emitFingerprints(tree)
	return map[string][]byte{
		folder + "/event_gen.go":         events,
		folder + "/stored_gen.go":        values,
		commands + "/fingerprint_gen.go": prints,
	}, err
}

// emitEvents returns the codec of events.
func emitEvents(tree *source.Tree) ([]byte, error) {
	pkg, err := tree.Package(folder)
	if err != nil {
		return nil, err
	}
	event := pkg.Struct("Event")
	if event == nil {
		return nil, fmt.Errorf("%s has no Event", folder)
	}
	bits, err := read(event)
	if err != nil {
		return nil, err
	}
	file := source.NewFile(pkg, folder+"/event.go")
	if err := write(file, bits); err != nil {
		return nil, err
	}
	return file.Text()
}

// bit is one bit of the mask with the fields that it stands for: one for each meaning.
type bit struct {
	number int
	fields []field
}

// field is one field of an event.
type field struct {
	name   string
	typ    types.Type
	option string   // name or fixed
	kinds  []string // nil: all that no other field of the bit has
}

// plain is the field of all kinds that have no field of their own, or the first one.
func (b *bit) plain() *field {
	for i := range b.fields {
		if b.fields[i].kinds == nil {
			return &b.fields[i]
		}
	}
	return &b.fields[0]
}

// read returns the bits of the struct in their order.
func read(event *source.Struct) ([]bit, error) {
	found := map[int]*bit{}
	add := func(number string, f field) error {
		n, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("record.Event.%s: the tag journal begins with %q, want a number", f.name, number)
		}
		if found[n] == nil {
			found[n] = &bit{number: n}
		}
		found[n].fields = append(found[n].fields, f)
		return nil
	}
	for _, x := range event.Fields {
		tag := x.Tag.Get("journal")
		if tag == "" {
			continue
		}
		parts := strings.Split(tag, ",")
		if x.Embedded {
			body, ok := x.Type.Underlying().(*types.Struct)
			if !ok {
				return nil, fmt.Errorf("record.Event.%s: it is no struct", x.Name)
			}
			if len(parts) != body.NumFields() {
				return nil, fmt.Errorf(
					"record.Event.%s: the tag names %d fields, and it has %d", x.Name, len(parts), body.NumFields(),
				)
			}
			for _, part := range parts {
				name, number, _ := strings.Cut(part, "=")
				number, option, _ := strings.Cut(number, ":")
				f, err := member(body, name)
				if err != nil {
					return nil, err
				}
				f.option = option
				if err := add(number, f); err != nil {
					return nil, err
				}
			}
			continue
		}
		f := field{name: x.Name, typ: x.Type}
		for _, part := range parts[1:] {
			if kinds, ok := strings.CutPrefix(part, "for="); ok {
				f.kinds = strings.Split(kinds, "|")
			} else {
				f.option = part
			}
		}
		if err := add(parts[0], f); err != nil {
			return nil, err
		}
	}
	bits := make([]bit, 0, len(found))
	for n := range len(found) {
		b := found[n]
		if b == nil {
			return nil, fmt.Errorf("record.Event: no field has bit %d, and there are %d bits", n, len(found))
		}
		if err := b.check(); err != nil {
			return nil, err
		}
		bits = append(bits, *b)
	}
	return bits, nil
}

func member(body *types.Struct, name string) (field, error) {
	for v := range body.Fields() {
		if v.Name() == name {
			return field{name: name, typ: v.Type()}, nil
		}
	}
	return field{}, fmt.Errorf("record.Event: the embedded struct has no field %s", name)
}

// check refuses fields of one bit that cannot be distinguished.
func (b *bit) check() error {
	var kinds []string
	plain := 0
	for _, f := range b.fields {
		if !types.Identical(f.typ, b.fields[0].typ) {
			return fmt.Errorf(
				"record.Event.%s and record.Event.%s share bit %d and have different types", f.name, b.fields[0].name, b.number,
			)
		}
		if f.kinds == nil {
			plain++
		}
		for _, k := range f.kinds {
			if slices.Contains(kinds, k) {
				return fmt.Errorf("record.Event.%s: two fields of bit %d are for %s", f.name, b.number, k)
			}
			kinds = append(kinds, k)
		}
	}
	if plain > 1 || plain == 0 && len(b.fields) > 1 {
		return fmt.Errorf(
			"record.Event.%s: of the fields of bit %d, %d are for all other kinds, want 1", b.fields[0].name, b.number, plain,
		)
	}
	return nil
}

func write(file *source.File, bits []bit) error {
	file.P("\n// The bits of the mask, in the order of the fields.\nconst (")
	for i := range bits {
		file.P("has%s = 1 << %d", bits[i].plain().name, bits[i].number)
	}
	file.P("\n// KnownFields are the bits of all fields.\nKnownFields = 1<<%d - 1\n)", len(bits))
	file.P("\n// fields appends the fields of an event that are not zero.\nfunc (w *fieldWriter) fields(ev *Event) {")
	for i := range bits {
		if err := bits[i].each(file, (*field).put); err != nil {
			return err
		}
	}
	file.P("}\n\n// field reads one field of an event.\nfunc (d *decoder) field(bit uint64, ev *Event) {\nswitch bit {")
	for i := range bits {
		file.P("case has%s:", bits[i].plain().name)
		if err := bits[i].each(file, (*field).get); err != nil {
			return err
		}
	}
	file.P("}\n}")
	return nil
}

// each emits the code for the field of a bit that an event of its kind has.
func (b *bit) each(file *source.File, emit func(f *field, file *source.File, bit string) error) error {
	name := "has" + b.plain().name
	if len(b.fields) == 1 {
		return emit(b.plain(), file, name)
	}
	file.P("switch ev.Kind {")
	for i := range b.fields {
		if f := &b.fields[i]; f.kinds != nil {
			file.P("case %s:", strings.Join(f.kinds, ", "))
			if err := emit(f, file, name); err != nil {
				return err
			}
		}
	}
	file.P("default:")
	if err := emit(b.plain(), file, name); err != nil {
		return err
	}
	file.P("}")
	return nil
}

// form is how a field is written: the name of a method of fieldWriter, and of the decoder.
func (f *field) form() (string, error) {
	if f.option == "fixed" {
		return "fixed", nil
	}
	switch kindOf(f.typ) {
	case text:
		return "text", nil
	case flag:
		return "flag", nil
	case number:
		if f.typ.Underlying() == types.Typ[types.Int] {
			return "signed", nil
		}
		return "number", nil
	case id:
		return "id", nil
	case blob:
		return "blob", nil
	}
	if list, ok := f.typ.Underlying().(*types.Slice); ok {
		if elem, ok := list.Elem().(*types.Named); ok {
			switch elem.Obj().Name() {
			case "Claim":
				return "claims", nil
			case "CycleStep":
				return "cycle", nil
			}
		}
	}
	return "", fmt.Errorf("record.Event.%s: nothing writes the type %s", f.name, f.typ)
}

// put emits the writer of a field.
func (f *field) put(file *source.File, bit string) error {
	form, err := f.form()
	if err != nil {
		return err
	}
	value := "ev." + f.name
	switch form {
	case "text":
		value = asText(f.typ, value)
	case "number":
		value = asNumber(f.typ, value)
	case "signed":
		value = "int64(" + value + ")"
	}
	file.P("w.%s(%s, %s)", form, bit, value)
	return nil
}

// get emits the reader of a field.
func (f *field) get(file *source.File, _ string) error {
	form, err := f.form()
	if err != nil {
		return err
	}
	to := "ev." + f.name
	switch form {
	case "flag":
		file.P("%s = true", to)
	case "id":
		file.P("copy(%s[:], d.bytes(16))", to)
	case "text":
		read := "d.text()"
		if f.option == "name" {
			read = "d.name()"
		}
		file.P("%s = %s", to, converted(file.Type(f.typ), f.typ, types.Typ[types.String], read))
	case "number":
		file.P("%s = %s", to, converted(file.Type(f.typ), f.typ, types.Typ[types.Uint64], "d.number()"))
	case "signed":
		file.P("%s = %s(d.signed())", to, file.Type(f.typ))
	case "claims", "cycle", "blob", "fixed":
		file.P("%s = d.%s()", to, form)
	}
	return nil
}

// converted spells a conversion of value, unless it has the type already.
func converted(to string, from, basic types.Type, value string) string {
	if types.Identical(from, basic) {
		return value
	}
	return to + "(" + value + ")"
}
