package settings

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Between the parts of an object or a list stand blanks and comments. A new last part goes behind
// those that follow the old last one, on a line of its own, and when it goes they stay.

// addMember adds a field at the end of an object of a depth; the root's fields have depth 1.
func (d *Document) addMember(o *hujson.Object, name string, value []byte, depth int) {
	var last *hujson.Value
	indent := d.indent(depth)
	if n := len(o.Members); n > 0 {
		last = &o.Members[n-1].Value
		indent = d.indentOf(o.Members[n-1].Name.BeforeExtra, depth)
	}
	before, after := d.make(last, &o.AfterExtra, indent, depth)
	v := d.render(value, indent)
	v.BeforeExtra, v.AfterExtra = hujson.Extra(" "), after
	if d.compact {
		v.BeforeExtra = nil
	}
	o.Members = append(o.Members, hujson.ObjectMember{
		Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: v,
	})
}

// addElement adds an element at the end of a list.
func (d *Document) addElement(a *hujson.Array, value []byte, depth int) {
	var last *hujson.Value
	indent := d.indent(depth)
	if n := len(a.Elements); n > 0 {
		last = &a.Elements[n-1]
		indent = d.indentOf(last.BeforeExtra, depth)
	}
	before, after := d.make(last, &a.AfterExtra, indent, depth)
	v := d.render(value, indent)
	v.BeforeExtra, v.AfterExtra = before, after
	a.Elements = append(a.Elements, v)
}

// make makes room for a new last part behind last, and returns what stands before and behind it. end
// is what stands before the closing bracket.
func (d *Document) make(
	last *hujson.Value,
	end *hujson.Extra,
	indent string,
	depth int,
) (before, after hujson.Extra) {
	if last != nil && last.AfterExtra != nil {
		after = hujson.Extra{} // it had a comma behind it, so the new one has
	}
	if d.compact {
		kept := bytes.TrimRight(*end, " \t")
		before, *end = slices.Clone(kept), slices.Clone((*end)[len(kept):])
		return before, after
	}
	rest := *end
	var closing hujson.Extra
	if i := bytes.LastIndexByte(rest, '\n'); i >= 0 && len(bytes.TrimSpace(rest[i:])) == 0 {
		if i > 0 && rest[i-1] == '\r' {
			i--
		}
		rest, closing = rest[:i], rest[i:]
	} else {
		kept := bytes.TrimRight(rest, " \t")
		rest, closing = kept, rest[len(kept):]
		if last == nil {
			closing = hujson.Extra(d.newline + d.indent(depth-1))
		}
	}
	*end = slices.Clone(closing)
	return append(slices.Clone(rest), d.newline+indent...), after
}

// removeMember removes a field with the blanks that belong to it.
func removeMember(o *hujson.Object, i int) {
	m := &o.Members[i]
	next, previous := &o.AfterExtra, (*hujson.Value)(nil)
	if i > 0 {
		previous = &o.Members[i-1].Value
	}
	if i+1 < len(o.Members) {
		next, previous = &o.Members[i+1].Name.BeforeExtra, nil
	}
	closeGap(
		m.Name.BeforeExtra,
		slices.Concat(m.Name.AfterExtra, m.Value.BeforeExtra),
		m.Value.AfterExtra,
		previous,
		next,
	)
	o.Members = slices.Delete(o.Members, i, i+1)
	if len(o.Members) == 0 && len(bytes.TrimSpace(o.AfterExtra)) == 0 {
		o.AfterExtra = nil
	}
}

func removeElement(a *hujson.Array, i int) {
	e := &a.Elements[i]
	next, previous := &a.AfterExtra, (*hujson.Value)(nil)
	if i > 0 {
		previous = &a.Elements[i-1]
	}
	if i+1 < len(a.Elements) {
		next, previous = &a.Elements[i+1].BeforeExtra, nil
	}
	closeGap(e.BeforeExtra, nil, e.AfterExtra, previous, next)
	a.Elements = slices.Delete(a.Elements, i, i+1)
	if len(a.Elements) == 0 && len(bytes.TrimSpace(a.AfterExtra)) == 0 {
		a.AfterExtra = nil
	}
}

// closeGap passes what stood around a removed part on to what follows it, but for its own line.
// previous is the part before it, if that is the last one now.
func closeGap(before, within, after hujson.Extra, previous *hujson.Value, next *hujson.Extra) {
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 && len(bytes.TrimSpace(before[i:])) == 0 {
		if i > 0 && before[i-1] == '\r' {
			i--
		}
		before = before[:i]
	} else {
		before = bytes.TrimRight(before, " \t")
	}
	gap := slices.Clone(before)
	for _, extra := range []hujson.Extra{within, after} {
		if len(bytes.TrimSpace(extra)) > 0 {
			gap = append(gap, extra...)
		}
	}
	if previous != nil && after == nil { // it was the last one and had no comma, so the one before has none now
		gap = append(slices.Clone(previous.AfterExtra), gap...)
		previous.AfterExtra = nil
	}
	if previous != nil && after != nil && previous.AfterExtra == nil {
		previous.AfterExtra = hujson.Extra{} // a comma behind the last part stays one
	}
	*next = append(gap, *next...)
}

// indent is the indentation of a depth.
func (d *Document) indent(depth int) string { return strings.Repeat(d.unit, depth) }

// indentOf is the indentation of a part, after the text before it, else that of its depth.
func (d *Document) indentOf(before hujson.Extra, depth int) string {
	i := bytes.LastIndexByte(before, '\n')
	if text := string(before[i+1:]); i >= 0 && strings.Trim(text, " \t") == "" {
		return text
	}
	return d.indent(depth)
}

// render writes a value of ours in the style of the document.
func (d *Document) render(value []byte, indent string) hujson.Value {
	text := value
	if !d.compact {
		var b bytes.Buffer
		if err := json.Indent(&b, value, indent, d.unit); err != nil {
			panic(err) // the value is ours
		}
		text = bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(d.newline))
	}
	v, err := hujson.Parse(text)
	if err != nil {
		panic(err)
	}
	return v
}
