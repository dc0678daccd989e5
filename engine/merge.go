package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// JSON documents.

// isJSON reports whether a content type is one of JSON documents.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == interlock.JSONType || strings.HasSuffix(media, "+json")
}

// maxJSONDepth is the nesting depth that package json accepts.
const maxJSONDepth = 10_000

// jsonProblem returns why b is not one JSON value and nothing else, in UTF-8 (RFC 8259),
// in words that follow its name, or "".
func jsonProblem(b []byte) *message.Text {
	switch {
	case utf8.Valid(b) && json.Valid(b):
		return nil
	case isDeeper(b, maxJSONDepth):
		return message.New(message.JSONTooDeep, message.Num(maxJSONDepth))
	}
	return message.New(message.NotJSON)
}

// isDeeper reports whether more than most arrays and objects are open somewhere in b.
func isDeeper(b []byte, most int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b) && depth <= most; i++ {
		switch c := b[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == '[' || c == '{'):
			depth++
		case !quoted && (c == ']' || c == '}'):
			depth--
		}
	}
	return depth > most
}

// mergePatch applies a JSON merge patch (RFC 7396) to a document; both are valid. The result
// has no spaces, and the members of the objects that the patch goes into are sorted. All else
// is as it was written, such as each digit of a number. It takes time in proportion to the
// text, at any depth.
func mergePatch(document []byte, patch *jsonText) []byte {
	target := readJSON(document)
	room := make([]byte, 0, len(target.text)+len(patch.text))
	return bytes.Clone(appendMerged(room, target.value(), patch.value())) // what is kept takes no more than it must
}

// jsonText is valid JSON without spaces, with the ends of its arrays and objects. So parts that
// are not requested are skipped: an object's members are listed on demand.
type jsonText struct {
	text  []byte
	opens []int32 // where each array or object begins, ascending
	ends  []int32 // where it ends: behind its bracket
	top   *jsonObject
}

// jsonValue is a value in a text. The zero value is none.
type jsonValue struct {
	in       *jsonText
	from, to int32
}

// jsonObject is the members of an object, sorted; of those with one name the last.
type jsonObject struct {
	in   *jsonText
	list []jsonMember
	keys [][]byte // the texts that the names stand for; nil if each is as it is written
}

// jsonMember is the position of a member's name, with its quote, and of its value. A colon
// stands between. It has no pointers, because a large document has too many members.
type jsonMember struct{ name, value, to int32 }

// readJSON reads a JSON value that is known to be valid.
func readJSON(text []byte) *jsonText {
	t := &jsonText{text: text}
	if !t.scan() {
		var b bytes.Buffer
		b.Grow(len(text))
		if err := json.Compact(&b, text); err != nil {
			panic("engine: valid JSON cannot be read: " + err.Error())
		}
		*t = jsonText{text: b.Bytes()}
		t.scan()
	}
	return t
}

// scan finds the brackets. It reports whether there are no spaces between values.
func (t *jsonText) scan() bool {
	var open []int32 // the arrays and objects that have not ended, as indexes
	for i := 0; i < len(t.text); i++ {
		switch t.text[i] {
		case '"':
			i = t.stringEnd(i) - 1
		case '[', '{':
			open = append(open, int32(len(t.opens)))
			t.opens, t.ends = append(t.opens, int32(i)), append(t.ends, 0)
		case ']', '}':
			t.ends[open[len(open)-1]] = int32(i + 1)
			open = open[:len(open)-1]
		case ' ', '\t', '\n', '\r':
			return false
		}
	}
	return true
}

// stringEnd returns where the string ends that begins at i.
func (t *jsonText) stringEnd(i int) int {
	for i++; t.text[i] != '"'; i++ {
		if t.text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns where the value ends that begins at i.
func (t *jsonText) valueEnd(i int) int {
	switch t.text[i] {
	case '"':
		return t.stringEnd(i)
	case '[', '{':
		n, _ := slices.BinarySearch(t.opens, int32(i))
		return int(t.ends[n])
	}
	for i < len(t.text) && t.text[i] != ',' && t.text[i] != ']' && t.text[i] != '}' {
		i++
	}
	return i
}

func (t *jsonText) value() jsonValue { return jsonValue{t, 0, int32(len(t.text))} }

func (v jsonValue) text() []byte { return v.in.text[v.from:v.to] }

func (v jsonValue) isObject() bool { return v.in != nil && v.in.text[v.from] == '{' }

func (v jsonValue) isNull() bool { return v.in.text[v.from] == 'n' }

// object lists the members of a value. A value that is not an object has none.
func (v jsonValue) object() *jsonObject {
	switch {
	case !v.isObject():
		return &jsonObject{}
	case v.from > 0:
		return v.in.object(v.from)
	case v.in.top == nil:
		v.in.top = v.in.object(0)
	}
	return v.in.top
}

// object lists the members of the object that begins at a place.
func (t *jsonText) object(from int32) *jsonObject {
	o := &jsonObject{in: t}
	escaped := false
	for i := int(from) + 1; t.text[i] != '}'; {
		if t.text[i] == ',' {
			i++
		}
		m := jsonMember{name: int32(i)}
		end := t.stringEnd(i)
		escaped = escaped || bytes.IndexByte(t.text[i:end], '\\') >= 0
		m.value = int32(end + 1)
		i = t.valueEnd(end + 1)
		m.to = int32(i)
		o.list = append(o.list, m)
	}
	if escaped {
		o.keys = make([][]byte, len(o.list))
		for i := range o.list {
			o.keys[i] = unquoted(o.name(i))
		}
	}
	o.sort()
	return o
}

// name returns the name of a member as it is written, and key the text that it stands for.
func (o *jsonObject) name(i int) []byte { return o.in.text[o.list[i].name : o.list[i].value-1] }

func (o *jsonObject) key(i int) []byte {
	if o.keys != nil {
		return o.keys[i]
	}
	return o.in.text[o.list[i].name+1 : o.list[i].value-2]
}

func (o *jsonObject) value(i int) jsonValue {
	return jsonValue{o.in, o.list[i].value, o.list[i].to}
}

// sort sorts members by their names, and keeps the last of those with one name.
func (o *jsonObject) sort() {
	if o.isSorted() {
		return
	}
	order := make([]int, len(o.list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(bytes.Compare(o.key(i), o.key(j)), cmp.Compare(i, j))
	})
	sorted := jsonObject{in: o.in, list: make([]jsonMember, 0, len(o.list))}
	for n, i := range order {
		if n+1 < len(order) && bytes.Equal(o.key(order[n+1]), o.key(i)) {
			continue
		}
		if sorted.list = append(sorted.list, o.list[i]); o.keys != nil {
			sorted.keys = append(sorted.keys, o.keys[i])
		}
	}
	*o = sorted
}

// isSorted reports whether members are sorted, and no two have one name.
func (o *jsonObject) isSorted() bool {
	for i := 1; i < len(o.list); i++ {
		if bytes.Compare(o.key(i-1), o.key(i)) >= 0 {
			return false
		}
	}
	return true
}

// appendMerged is the algorithm of RFC 7396, section 2, for sorted members. A value that is not
// an object has none.
func appendMerged(b []byte, target, patch jsonValue) []byte {
	if !patch.isObject() {
		return append(b, patch.text()...)
	}
	b = append(b, '{')
	empty := len(b)
	name := func(o *jsonObject, i int) {
		if len(b) > empty {
			b = append(b, ',')
		}
		b = append(append(b, o.name(i)...), ':')
	}
	old, changes := target.object(), patch.object()
	next := 0 // of old
	keep := func() {
		name(old, next)
		b = append(b, old.value(next).text()...)
		next++
	}
	for i := range changes.list {
		for next < len(old.list) && bytes.Compare(old.key(next), changes.key(i)) < 0 {
			keep()
		}
		var before jsonValue
		if next < len(old.list) && bytes.Equal(old.key(next), changes.key(i)) {
			before = old.value(next)
			next++
		}
		if change := changes.value(i); !change.isNull() {
			name(changes, i)
			b = appendMerged(b, before, change)
		}
	}
	for next < len(old.list) {
		keep()
	}
	return append(b, '}')
}

// unquoted returns the text that a string stands for.
func unquoted(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		panic("engine: valid JSON has a string that cannot be read: " + err.Error())
	}
	return []byte(s)
}
