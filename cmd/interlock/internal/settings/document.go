package settings

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// Document is JSON, possibly with comments and trailing commas, that is changed in place: what is not
// changed keeps its bytes.
type Document struct {
	name    string
	mark    []byte // the byte order mark of some editors
	root    hujson.Value
	unit    string // one level of indentation
	newline string
	compact bool // all on one line
	open    bool // the last line has no end
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// Parse reads a document, an object. The empty text is the empty object.
func Parse(name string, text []byte) (*Document, error) {
	d := &Document{name: name, unit: "  ", newline: "\n"}
	if bytes.HasPrefix(text, byteOrderMark) {
		d.mark, text = byteOrderMark, text[len(byteOrderMark):]
	}
	if bytes.Contains(text, []byte("\r\n")) {
		d.newline = "\r\n"
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + d.newline)
	}
	if d.open = text[len(text)-1] != '\n'; d.open {
		text = append(slices.Clone(text), '\n') // the package wants one behind a comment
	}
	var err error
	if d.root, err = hujson.Parse(slices.Clone(text)); err != nil {
		return nil, cli.Usagef(
			"%s cannot be read (%s): repair it first, nothing was changed", cli.Clean(name),
			cli.Clean(strings.TrimPrefix(err.Error(), "hujson: ")),
		)
	}
	root, err := d.object(&d.root)
	if err != nil {
		return nil, err
	}
	if len(root.Members) > 0 {
		before := root.Members[0].Name.BeforeExtra
		i := bytes.LastIndexByte(before, '\n')
		d.compact = !bytes.Contains(bytes.TrimSpace(text), []byte("\n"))
		if indent := string(before[i+1:]); i >= 0 && indent != "" && strings.Trim(indent, " \t") == "" {
			d.unit = indent
		}
	}
	return d, nil
}

// Bytes returns the text of the document.
func (d *Document) Bytes() []byte {
	text := d.root.Pack()
	if d.open {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	return append(slices.Clone(d.mark), text...)
}

func (d *Document) object(v *hujson.Value) (*hujson.Object, error) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, d.other(v, "an object")
	}
	for i := range o.Members {
		name := nameOf(&o.Members[i])
		if slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == name }) != i {
			return nil, cli.Usagef(
				"%s has two fields %s in one object: remove one of them first",
				cli.Clean(d.name),
				cli.Quote(cli.Clean(name)),
			)
		}
	}
	return o, nil
}

func (d *Document) other(v *hujson.Value, want string) error {
	line := 1 + bytes.Count(d.root.Pack()[:min(v.StartOffset, len(d.root.Pack()))], []byte("\n"))
	return cli.Usagef(
		"%s, line %d: %s stands where %s should be: repair it first, nothing was changed", cli.Clean(d.name), line,
		cli.Clean(cli.Clip(string(bytes.TrimSpace(v.Pack())), 40)), want,
	)
}

func nameOf(m *hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// find returns the value at a path of names, nil if there is none.
func (d *Document) find(path []string) (*hujson.Value, error) {
	v := &d.root
	for _, name := range path {
		o, err := d.object(v)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == name })
		if i < 0 {
			return nil, nil
		}
		v = &o.Members[i].Value
	}
	return v, nil
}

// Has reports whether there is a value at a path.
func (d *Document) Has(path ...string) bool {
	v, err := d.find(path)
	return err == nil && v != nil
}

// Get reads the value at a path, and reports whether there is one.
func (d *Document) Get(into any, path ...string) (bool, error) {
	v, err := d.find(path)
	if err != nil || v == nil {
		return false, err
	}
	if err := json.Unmarshal(standard(v), into); err != nil {
		return false, d.other(v, "something else")
	}
	return true, nil
}

// Names lists the fields of the object at a path.
func (d *Document) Names(path ...string) (names []string, err error) {
	v, err := d.find(path)
	if err != nil || v == nil {
		return nil, err
	}
	o, err := d.object(v)
	if err != nil {
		return nil, err
	}
	for i := range o.Members {
		names = append(names, nameOf(&o.Members[i]))
	}
	return names, nil
}

// Elements returns the elements of the array at a path, as plain JSON without blanks.
func (d *Document) Elements(path ...string) (list [][]byte, err error) {
	a, err := d.array(path)
	if err != nil || a == nil {
		return nil, err
	}
	for i := range a.Elements {
		list = append(list, standard(&a.Elements[i]))
	}
	return list, nil
}

func (d *Document) array(path []string) (*hujson.Array, error) {
	v, err := d.find(path)
	if err != nil || v == nil {
		return nil, err
	}
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, d.other(v, "a list")
	}
	return a, nil
}

// standard is the plain JSON of a value.
func standard(v *hujson.Value) []byte {
	c := v.Clone()
	c.Minimize()
	return c.Pack()
}

// JSON is the plain JSON of a value of ours.
func JSON(value any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(err) // the types are ours
	}
	return bytes.TrimSpace(b.Bytes())
}

// Set sets the value at a path, and makes the objects on the way.
func (d *Document) Set(value any, path ...string) error {
	return d.set(&d.root, JSON(value), path, 1)
}

func (d *Document) set(in *hujson.Value, value []byte, path []string, depth int) error {
	o, err := d.object(in)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == path[0] })
	if len(path) > 1 {
		if i < 0 {
			d.addMember(o, path[0], []byte("{}"), depth)
			i = len(o.Members) - 1
		}
		return d.set(&o.Members[i].Value, value, path[1:], depth+1)
	}
	if i < 0 {
		d.addMember(o, path[0], value, depth)
		return nil
	}
	old := &o.Members[i].Value
	if !bytes.Equal(standard(old), value) {
		old.Value = d.render(value, d.indentOf(o.Members[i].Name.BeforeExtra, depth)).Value
	}
	return nil
}

// Append adds an element to the list at a path, and makes what is missing on the way.
func (d *Document) Append(value any, path ...string) error {
	a, err := d.array(path)
	if err != nil {
		return err
	}
	if a == nil {
		if err := d.Set([]any{}, path...); err != nil {
			return err
		}
		if a, err = d.array(path); err != nil {
			return err
		}
	}
	d.addElement(a, JSON(value), len(path)+1)
	return nil
}

// Keep removes an element from the list at a path unless keep returns true. keep may return
// another element in place of one.
func (d *Document) Keep(keep func(element []byte) (kept []byte, ok bool), path ...string) error {
	a, err := d.array(path)
	if err != nil || a == nil {
		return err
	}
	for i := len(a.Elements) - 1; i >= 0; i-- {
		old := standard(&a.Elements[i])
		switch kept, ok := keep(old); {
		case !ok:
			removeElement(a, i)
		case !bytes.Equal(kept, old):
			a.Elements[i].Value = d.render(kept, d.indentOf(a.Elements[i].BeforeExtra, len(path)+1)).Value
		}
	}
	return nil
}

// Remove removes the value at a path.
func (d *Document) Remove(path ...string) error {
	v, err := d.find(path[:len(path)-1])
	if err != nil || v == nil {
		return err
	}
	o, err := d.object(v)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(
		o.Members,
		func(m hujson.ObjectMember) bool { return nameOf(&m) == path[len(path)-1] },
	); i >= 0 {
		removeMember(o, i)
	}
	return nil
}

// Bare reports whether the object or list at a path has neither a field, an element nor a comment.
func (d *Document) Bare(path ...string) bool {
	v, err := d.find(path)
	if err != nil || v == nil {
		return false
	}
	text := standard(v)
	return (string(text) == "{}" || string(text) == "[]") && comments(v) == ""
}

// Same reports whether two documents differ in nothing but blanks and trailing commas.
func (d *Document) Same(o *Document) bool {
	return bytes.Equal(standard(&d.root), standard(&o.root)) && comments(&d.root) == comments(&o.root)
}

// comments is all comments of a value, without blanks.
func comments(v *hujson.Value) string {
	var b strings.Builder
	add := func(extra hujson.Extra) { b.WriteString(strings.Join(strings.Fields(string(extra)), "")) }
	for v := range v.All() {
		add(v.BeforeExtra)
		add(v.AfterExtra)
		switch c := v.Value.(type) {
		case *hujson.Object:
			add(c.AfterExtra)
		case *hujson.Array:
			add(c.AfterExtra)
		}
	}
	return b.String()
}
