package jsoncodec

import (
	"fmt"
	"go/types"
	"path"
	"strings"
	"unicode"

	"github.com/interlockdev/interlock/internal/gen/model"
	"github.com/interlockdev/interlock/internal/gen/source"
)

// Emit returns the files of package server.
func Emit(tree *source.Tree) (map[string][]byte, error) {
	m, err := model.Load(tree)
	if err != nil {
		return nil, err
	}
	pkg := &source.Package{Folder: "server", Path: path.Join(tree.Module, "server"), Name: "server"}
	file := source.NewFile(pkg, model.Folder)
	for i := range decoders {
		p := &printer{File: file, tree: tree, model: m, decoder: &decoders[i]}
		if err := p.decode(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.message, err)
		}
	}
	text, err := file.Text()
	if err != nil {
		return nil, err
	}
	answers, err := emitEncoders(tree, m)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"server/requests_gen.go": text, "server/answers_gen.go": answers}, nil
}

// printer writes one decoder.
type printer struct {
	*source.File
	tree  *source.Tree
	model *model.Model
	*decoder
	places []place
}

// place is a parameter.
type place struct {
	name string
	typ  string // what it points to
	// fields is the struct that it points to, or nil.
	fields *source.Struct
}

func (p *printer) decode() error {
	msg := p.model.Message(p.message)
	if msg == nil {
		return fmt.Errorf("is no message of %s", model.Folder)
	}
	if err := p.readParams(); err != nil {
		return err
	}
	method := p.name()
	var names []string
	for _, f := range msg.Fields {
		names = append(names, fmt.Sprintf("%q", f.Name))
	}
	p.P("\nvar %sFields = []string{%s}", method, strings.Join(names, ", "))
	result, kind := "", ""
	if p.given {
		result, kind = "return ", " given"
		p.constants(msg)
	}
	p.P("\n// %s reads a body of the kind api.%s.", method, p.message)
	p.P("func (d *jsonIn) %s(%s)%s {", method, p.params, kind)
	p.P("%sd.object(%sFields, func(field int) {", result, method)
	p.P("switch field {")
	for i := range msg.Fields {
		f := &msg.Fields[i]
		statement, err := p.statement(f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Go, err)
		}
		p.P("case %d: // %s", i, f.Name)
		p.P("%s", statement)
	}
	p.P("}")
	p.P("})")
	p.P("}")
	return nil
}

// constants declares a bit for each field of a body.
func (p *printer) constants(msg *model.Message) {
	prefix := strings.TrimSuffix(methodName(msg.Name), "Request")
	p.P("\nconst (")
	for i, f := range msg.Fields {
		value := ""
		if i == 0 {
			value = " given = 1 << iota"
		}
		p.P("%sHas%s%s", prefix, f.Go, value)
	}
	p.P(")")
}

// folders has the packages that are not in the folder of their name.
var folders = map[string]string{
	"interlock": ".", "prose": "internal/prose", "timeline": "internal/timeline", "report": "internal/report",
	"incident": "internal/incident", "advice": "internal/advice",
}

func (p *printer) readParams() error {
	for _, param := range strings.Split(p.params, ", ") {
		name, typ, ok := strings.Cut(param, " *")
		if !ok {
			return fmt.Errorf("parameter %q is no pointer", param)
		}
		x := place{name: name, typ: typ}
		folder, typeName, ok := strings.Cut(typ, ".")
		switch {
		case !ok && !unicode.IsUpper(rune(typ[0])): // a type of the language
		case folder == "time":
			p.Import("time")
		default:
			if !ok {
				folder, typeName = "server", typ
			}
			if at, ok := folders[folder]; ok {
				folder = at
			}
			pkg, err := p.tree.Package(folder)
			if err != nil {
				return err
			}
			if folder != "server" {
				p.Import(pkg.Path)
			}
			if object := pkg.Types.Scope().Lookup(typeName); object != nil {
				x.fields, _ = p.tree.Struct(object.Type())
			}
		}
		p.places = append(p.places, x)
	}
	return nil
}

// target returns the place of a field, as an expression, and its type.
func (p *printer) target(f *model.Field) (expr, typ string, err error) {
	for _, x := range p.places {
		if x.name == lowerFirst(f.Go) {
			return "*" + x.name, x.typ, nil
		}
		if x.fields == nil {
			continue
		}
		object, _, _ := types.LookupFieldOrMethod(types.NewPointer(x.fields.Type), true, x.fields.Package.Types, f.Go)
		if v, ok := object.(*types.Var); ok {
			typ := types.TypeString(v.Type(), func(p *types.Package) string { return p.Name() })
			return x.name + "." + f.Go, typ, nil
		}
	}
	return "", "", fmt.Errorf(noPlace, p.params)
}

// statement reads a field into its place.
func (p *printer) statement(f *model.Field) (string, error) {
	if s, ok := p.read[f.Go]; ok {
		if strings.Contains(s, "interlock.") {
			p.Import(p.tree.Module)
		}
		return s, nil
	}
	to, typ, err := p.target(f)
	if err != nil {
		return "", err
	}
	if f.Type.Kind == model.Object {
		if method := valueMethod(f.Type.Name); method != "" {
			if strings.HasPrefix(typ, "*") {
				return fmt.Sprintf("x := d.%s()\n%s = &x", method, to), nil
			}
			return fmt.Sprintf("%s = d.%s()", to, method), nil
		}
		if elem, ok := strings.CutPrefix(typ, "*"); ok {
			return fmt.Sprintf("%s = new(%s)\nd.%s(%s)", to, elem, methodName(f.Type.Name), to), nil
		}
		return fmt.Sprintf("d.%s(&%s)", methodName(f.Type.Name), to), nil
	}
	if f.Type.Kind == model.List {
		return p.list(f, to, typ)
	}
	value, err := p.value(f.Type, &f.Limits, typ)
	if err != nil {
		return "", err
	}
	return to + " = " + value, nil
}

func (p *printer) list(f *model.Field, to, typ string) (string, error) {
	if f.Max == nil {
		return "", fmt.Errorf("a list has no limit")
	}
	most := p.limit(f.Max)
	elem, ok := strings.CutPrefix(typ, "[]")
	if !ok {
		return "", fmt.Errorf("a list does not fit %s", typ)
	}
	if f.Type.Elem.Name == "ClaimRequest" { // it has a code of its own for too many
		return fmt.Sprintf("%s = d.claims(%s)", to, most), nil
	}
	var read string
	if method := valueMethod(f.Type.Elem.Name); method != "" {
		read = fmt.Sprintf("%s = append(%[1]s, d.%s())", to, method)
	} else if f.Type.Elem.Kind == model.Object {
		read = fmt.Sprintf("var x %s\nd.%s(&x)\n%s = append(%[3]s, x)", elem, methodName(f.Type.Elem.Name), to)
	} else {
		value, err := p.value(*f.Type.Elem, &model.Limits{}, elem)
		if err != nil {
			return "", err
		}
		read = fmt.Sprintf("%s = append(%[1]s, %s)", to, value)
	}
	return fmt.Sprintf("d.array(%s, d.tooLong(%[1]s), func() {\n%s\n})", most, read), nil
}

// valueMethod returns the method that reads a message and returns it, if it is written by hand.
func valueMethod(message string) string {
	for i := range decoders {
		if decoders[i].message == message {
			return decoders[i].value
		}
	}
	return byHand[message]
}

// value is the expression that reads a value as a Go type.
func (p *printer) value(t model.Type, l *model.Limits, typ string) (string, error) {
	if read, ok := scalarReaders[t.Name]; ok {
		return read, nil
	}
	known, inRoot := strings.CutPrefix(typ, "interlock.")
	if inRoot {
		p.Import(p.tree.Module)
	}
	switch {
	case t.Kind == model.Bool && typ == "bool":
		return "d.yes()", nil
	case t.Name == "Milliseconds" && typ == "time.Duration":
		return "d.ms()", nil
	case t.Kind == model.Decimal && inRoot:
		return "d." + lowerFirst(known) + "()", nil
	case t.Kind == model.String && len(l.Enum) > 0 && inRoot:
		return fmt.Sprintf("named(d, %q, interlock.Parse%s)", model.Or(l.Enum), known), nil
	case t.Kind == model.String && len(l.Enum) > 0 && typ == "string":
		var words []string
		for _, w := range l.Enum {
			words = append(words, fmt.Sprintf("%q", w))
		}
		return fmt.Sprintf("d.choice(%q, %s)", model.Or(l.Enum), strings.Join(words, ", ")), nil
	case t.Kind == model.String && typ == "string":
		return "d.str()", nil
	case t.Kind == model.String && typ == "interlock.Key":
		return "interlock.Key(d.str())", nil
	case t.Kind == model.Any && typ == "[]byte":
		return "d.json()", nil
	case t.Kind == model.Any && typ == "string":
		return "d.result()", nil
	case t.Kind == model.Int:
		return p.number(l, typ)
	}
	return "", fmt.Errorf("there is no reader of %s", typ)
}

func (p *printer) number(l *model.Limits, typ string) (string, error) {
	read := "d.int()"
	if l.Min != nil && l.Max != nil {
		read = fmt.Sprintf("d.whole(%s, %s)", p.limit(l.Min), p.limit(l.Max))
	} else if l.Min != nil || l.Max != nil {
		return "", fmt.Errorf("a number has both limits or none")
	}
	switch typ {
	case "int64":
		return read, nil
	case "int", "uint32", "uint64":
		return typ + "(" + read + ")", nil
	}
	return "", fmt.Errorf("a number does not fit %s", typ)
}

// limit is a limit as an expression of package server.
func (p *printer) limit(l *model.Limit) string {
	name, negative := strings.CutPrefix(l.Text, "-")
	if unicode.IsDigit(rune(name[0])) {
		return l.Text
	}
	p.Import(p.tree.Module)
	if negative {
		return "-interlock." + name
	}
	return "interlock." + name
}

// name is the name of the method.
func (d *decoder) name() string {
	if d.method != "" {
		return d.method
	}
	return methodName(d.message)
}

// methodName is the name of the method that reads a message.
func methodName(message string) string { return lowerFirst(message) }

// lowerFirst returns a name as a local one: TTL becomes ttl, AsOf asOf.
func lowerFirst(name string) string {
	for i, r := range name {
		if !unicode.IsUpper(r) {
			n := max(i-1, 1)
			return strings.ToLower(name[:n]) + name[n:]
		}
	}
	return strings.ToLower(name)
}
