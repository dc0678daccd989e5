package packet

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// jsonPatch returns the operations (RFC 6902) that make now of then, as many of them as fit
// into limit bytes. It is not ok if one of the two cannot be read exactly.
//
// Its cost is linear in the documents, and the operations are never more than limit: a
// comparison that has filled its room stops.
func jsonPatch(then, now []byte, thenAbsent, nowAbsent bool, limit int) (patch []byte, isCut, ok bool) {
	p := patcher{now: now, room: limit - len("[]")}
	switch {
	case thenAbsent && nowAbsent:
	case nowAbsent:
		p.emit("remove", nil)
	case thenAbsent:
		t, ok := newTrees().parse(now)
		if !ok {
			return nil, false, false
		}
		p.emit("add", t)
	default:
		trees := newTrees()
		a, ok := trees.parse(then)
		if !ok {
			return nil, false, false
		}
		b, ok := trees.parse(now)
		if !ok {
			return nil, false, false
		}
		p.compare(a, b)
	}
	return slices.Concat([]byte("["), p.out, []byte("]")), p.cut, true
}

// patcher writes the operations of one patch.
type patcher struct {
	now  []byte // the text that values are taken from
	path []byte // the JSON pointer (RFC 6901) of the value that is compared
	out  []byte // the operations, separated by commas
	room int
	cut  bool // an operation did not fit: nothing may follow
}

// emit appends an operation at path. The value is nil for one that has none.
func (p *patcher) emit(op string, value *tree) {
	if p.cut {
		return
	}
	// An operation that is obviously too long is not even written.
	if len(p.out)+len(p.path) > p.room || value != nil && len(p.out)+value.to-value.from > 2*p.room {
		p.cut = true
		return
	}
	before := len(p.out)
	if before > 0 {
		p.out = append(p.out, ',')
	}
	p.out = append(p.out, `{"op":"`...)
	p.out = append(p.out, op...)
	p.out = append(p.out, `","path":`...)
	p.out = append(p.out, quoteJSON(string(p.path))...)
	if value != nil {
		p.out = append(p.out, `,"value":`...)
		b := bytes.NewBuffer(p.out)
		if err := json.Compact(b, p.now[value.from:value.to]); err != nil {
			panic("packet: a value that was read is not JSON: " + err.Error())
		}
		p.out = b.Bytes()
	}
	p.out = append(p.out, '}')
	if len(p.out) > p.room {
		p.out, p.cut = p.out[:before], true
	}
}

// compare emits what makes b of a. Operations show more than the new value alone does, unless
// they are much longer or do not fit.
func (p *patcher) compare(a, b *tree) {
	if a.id == b.id || p.cut {
		return
	}
	before := len(p.out)
	switch {
	case a.kind == object && b.kind == object:
		p.objects(a, b)
	case a.kind == array && b.kind == array:
		p.arrays(a, b)
	default:
		p.emit("replace", b)
		return
	}
	if !p.cut && len(p.out)-before <= 2*(b.to-b.from) {
		return
	}
	anew := *p
	anew.out, anew.cut = slices.Clone(p.out[:before]), false
	if anew.emit("replace", b); !anew.cut && (p.cut || len(p.out)-before > 2*(len(anew.out)-before)) {
		*p = anew
	}
}

// objects compares member by member, in the order of their names.
func (p *patcher) objects(a, b *tree) {
	i, j := 0, 0
	for (i < len(a.names) || j < len(b.names)) && !p.cut {
		switch {
		case j == len(b.names) || i < len(a.names) && a.names[i] < b.names[j]:
			p.at(a.names[i], func() { p.emit("remove", nil) })
			i++
		case i == len(a.names) || b.names[j] < a.names[i]:
			p.at(b.names[j], func() { p.emit("add", b.kids[j]) })
			j++
		default:
			if a.kids[i].id != b.kids[j].id {
				p.at(a.names[i], func() { p.compare(a.kids[i], b.kids[j]) })
			}
			i++
			j++
		}
	}
}

// arrays compares along the elements that both have in common. The operations apply
// one after the other, so each index counts what those before it have done.
func (p *patcher) arrays(a, b *tree) {
	for _, d := range lcs.DiffRunes(a.ids(), b.ids()) {
		gone, come := d.End-d.Start, d.ReplEnd-d.ReplStart
		both := min(gone, come)
		for i := range both {
			p.element(d.ReplStart+i, func() { p.compare(a.kids[d.Start+i], b.kids[d.ReplStart+i]) })
		}
		for i := both; i < gone && !p.cut; i++ {
			p.element(d.ReplStart+both, func() { p.emit("remove", nil) })
		}
		for i := both; i < come && !p.cut; i++ {
			p.element(d.ReplStart+i, func() { p.emit("add", b.kids[d.ReplStart+i]) })
		}
		if p.cut {
			return
		}
	}
}

func (p *patcher) element(index int, do func()) { p.at(strconv.Itoa(index), do) }

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// at does something one level deeper.
func (p *patcher) at(name string, do func()) {
	n := len(p.path)
	p.path = append(p.path, '/')
	if len(name) > p.room { // nothing below it can be said
		p.cut = true
	} else {
		p.path = append(p.path, pointerEscape.Replace(name)...)
		do()
	}
	p.path = p.path[:n]
}

// quoteJSON writes a string as JSON.
func quoteJSON(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("packet: a string that JSON cannot hold: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
