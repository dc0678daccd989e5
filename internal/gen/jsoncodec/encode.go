package jsoncodec

import (
	"fmt"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/model"
	"github.com/interlockdev/interlock/internal/gen/source"
)

// emitEncoders returns the file with the functions that write answers.
func emitEncoders(tree *source.Tree, m *model.Model) ([]byte, error) {
	pkg := &source.Package{Folder: "server", Path: path.Join(tree.Module, "server"), Name: "server"}
	file := source.NewFile(pkg, model.Folder)
	for i := range encoders {
		e := &encoders[i]
		p := &printer{File: file, tree: tree, model: m, decoder: &decoder{message: e.message, params: e.from}}
		if err := p.encode(e); err != nil {
			return nil, fmt.Errorf("%s: %w", e.message, err)
		}
	}
	return file.Text()
}

func (p *printer) encode(e *encoder) error {
	msg := p.model.Message(e.message)
	if msg == nil {
		return fmt.Errorf("is no message of %s", model.Folder)
	}
	if err := p.readParams(); err != nil {
		return err
	}
	if p.places[0].fields == nil {
		return fmt.Errorf("%s is no struct", e.from)
	}
	params := e.from
	if e.with != "" {
		params += ", " + e.with
	}
	p.importFor(params)
	if e.flat {
		p.P("\n// %s writes the members of an api.%s.", e.function, e.message)
		p.P("func %s(j *jsonOut, %s) {", e.function, params)
	} else {
		p.P("\n// %s writes an api.%s as the member name, or as an element.", e.function, e.message)
		p.P("func %s(j *jsonOut, name string, %s) {", e.function, params)
		p.P("j.open(name)")
	}
	condition := ""
	for i := range msg.Fields {
		f := msg.Fields[i]
		if e.flat && (f.Type.Name == "At" || f.Type.Kind == model.Time) {
			continue // of the stamp, which call.send writes
		}
		f.Optional = f.Optional && !slices.Contains(e.always, f.Go)
		statement, special := e.write[f.Go]
		if !special {
			var err error
			if statement, err = p.member(&f); err != nil {
				return fmt.Errorf("%s: %w", f.Go, err)
			}
		}
		if e.when[f.Go] != condition && condition != "" {
			p.P("}")
		}
		if e.when[f.Go] != condition && e.when[f.Go] != "" {
			p.P("if %s {", e.when[f.Go])
		}
		condition = e.when[f.Go]
		if statement != "" {
			p.importFor(statement)
			p.P("%s", statement)
		}
	}
	if condition != "" {
		p.P("}")
	}
	if !e.flat {
		p.P("j.close()")
	}
	p.P("}")
	return nil
}

// importFor imports the packages that a table's statement or parameters use.
func (p *printer) importFor(code string) {
	for name, at := range map[string]string{
		"interlock.": p.tree.Module, "packet.": p.tree.Module + "/internal/packet",
		"prose.": p.tree.Module + "/internal/prose", "hex.": "encoding/hex",
	} {
		if strings.Contains(code, name) {
			p.Import(at)
		}
	}
}

// origin returns the expression and the type of the field of the first parameter with the name.
func (p *printer) origin(f *model.Field) (string, types.Type, error) {
	x := p.places[0]
	object, _, _ := types.LookupFieldOrMethod(types.NewPointer(x.fields.Type), true, x.fields.Package.Types, f.Go)
	v, ok := object.(*types.Var)
	if !ok {
		return "", nil, fmt.Errorf(noPlace, p.params)
	}
	return x.name + "." + f.Go, v.Type(), nil
}

// member writes a field.
func (p *printer) member(f *model.Field) (string, error) {
	v, typ, err := p.origin(f)
	if err != nil {
		return "", err
	}
	write, isSet := "", ""
	switch f.Type.Kind {
	case model.Object:
		function, err := functionOf(f.Type.Name)
		if err != nil {
			return "", err
		}
		if _, pointer := typ.(*types.Pointer); pointer {
			write, isSet = fmt.Sprintf("%s(j, %q, %s)", function, f.Name, v), v+" != nil"
		} else {
			write = fmt.Sprintf("%s(j, %q, &%s)", function, f.Name, v)
		}
	case model.List:
		element, err := p.element(f, v, typ)
		if err != nil {
			return "", err
		}
		write, isSet = fmt.Sprintf(
			"j.openArray(%q)\nfor i := range %s {\n%s\n}\nj.closeArray()", f.Name, v, element,
		), "len("+v+") > 0"
	case model.Bool:
		write, isSet = fmt.Sprintf("j.bool(%q, %s)", f.Name, v), v
	case model.Int:
		switch {
		case f.Type.Name == "Milliseconds" && f.Optional:
			return fmt.Sprintf("j.duration(%q, %s)", f.Name, v), nil
		case f.Type.Name == "Milliseconds":
			return fmt.Sprintf("j.ms(%q, %s)", f.Name, v), nil
		case f.Optional:
			return fmt.Sprintf("j.count(%q, %s)", f.Name, convert("uint64", v, typ)), nil
		}
		write = fmt.Sprintf("j.int(%q, %s)", f.Name, convert("int64", v, typ))
	case model.Decimal:
		write, isSet = fmt.Sprintf("j.decimal(%q, uint64(%s))", f.Name, v), v+" != 0"
	case model.Time:
		write, isSet = fmt.Sprintf("j.moment(%q, %s)", f.Name, v), v+" != 0"
	case model.Any:
		value := v
		if types.Identical(typ, types.Typ[types.String]) {
			value = "[]byte(" + v + ")"
		}
		write, isSet = fmt.Sprintf("j.value(%q, %s)", f.Name, value), "len("+v+") > 0"
	case model.String:
		if f.Text == "line" && f.Optional {
			return fmt.Sprintf("j.said(%q, %s)", f.Name, v), nil
		}
		text, set, err := textOf(v, typ)
		if err != nil {
			return "", err
		}
		write, isSet = fmt.Sprintf("j.%s(%q, %s)", textMethods[f.Text], f.Name, text), set
	default:
		return "", fmt.Errorf("there is no writer of %s", typ)
	}
	if f.Optional && isSet == "" {
		return "", fmt.Errorf("it is not known when to leave out %s", typ)
	}
	if f.Optional {
		return fmt.Sprintf("if %s {\n%s\n}", isSet, write), nil
	}
	return write, nil
}

// textMethods write strings: our own, and those of agents and people.
var textMethods = map[string]string{"": "str", "line": "text", "lines": "note"}

// element writes an element of a list.
func (p *printer) element(f *model.Field, v string, typ types.Type) (string, error) {
	list, ok := typ.Underlying().(*types.Slice)
	if !ok {
		return "", fmt.Errorf("%s is no list", typ)
	}
	switch f.Type.Elem.Kind {
	case model.Object:
		function, err := functionOf(f.Type.Elem.Name)
		return fmt.Sprintf("%s(j, \"\", &%s[i])", function, v), err
	case model.Decimal:
		return fmt.Sprintf("j.decimal(\"\", uint64(%s[i]))", v), nil
	}
	text, _, err := textOf(v+"[i]", list.Elem())
	return fmt.Sprintf("j.%s(\"\", %s)", textMethods[f.Text], text), err
}

// textOf returns the expression of a value as a string, and when it is set.
func textOf(v string, typ types.Type) (text, set string, err error) {
	_, named := types.Unalias(typ).(*types.Named)
	switch t := typ.Underlying().(type) {
	case *types.Basic:
		switch {
		case t.Info()&types.IsString != 0 && named:
			return "string(" + v + ")", v + ` != ""`, nil
		case t.Info()&types.IsString != 0:
			return v, v + ` != ""`, nil
		case named:
			return v + ".String()", v + " != 0", nil
		}
	case *types.Array:
		return v + ".String()", "!" + v + ".IsZero()", nil
	}
	return "", "", fmt.Errorf("%s is no text", typ)
}

func convert(to, v string, typ types.Type) string {
	if typ.String() == to {
		return v
	}
	return to + "(" + v + ")"
}

// functionOf is the function that writes a message.
func functionOf(message string) (string, error) {
	for i := range encoders {
		if encoders[i].message == message && !encoders[i].flat && encoders[i].with == "" {
			return encoders[i].function, nil
		}
	}
	return "", fmt.Errorf("no function writes %s: add it to internal/gen/jsoncodec/answers.go", strings.TrimSpace(message))
}

// noPlace is the failure of a field of package api that the values, which the argument lists, do not have.
const noPlace = "has no place in %s: add the field to the struct, or the exception to internal/gen/jsoncodec, " +
	"then run make generate"
