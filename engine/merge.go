package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// JSON documents.

// isJSON reports whether a content type is one of JSON documents.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == interlock.JSONType || strings.HasSuffix(media, "+json")
}

// maxJSONDepth is how deep package json reads what is nested.
const maxJSONDepth = 10_000

// jsonProblem says why b is not one JSON value and nothing else, in UTF-8 (RFC 8259),
// in words that follow its name, or "".
func jsonProblem(b []byte) string {
	switch {
	case utf8.Valid(b) && json.Valid(b):
		return ""
	case isDeeper(b, maxJSONDepth):
		return fmt.Sprintf("is nested deeper than %d", maxJSONDepth)
	}
	return "is not one JSON value in UTF-8"
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

// mergePatch applies a JSON merge patch (RFC 7396) to a document; both are valid. The
// result has no spaces, and the members of the objects that the patch goes into are
// sorted. All else is as it was written, such as each digit of a number. It takes time
// in proportion to the text, whatever its depth.
func mergePatch(document, patch []byte) []byte {
	room := make([]byte, 0, len(document)+len(patch))
	return bytes.Clone(appendMerged(room, readJSON(document), readJSON(patch))) // what is kept takes no more than it must
}

// jsonValue is a JSON value, and of an object its members.
type jsonValue struct {
	text    []byte
	members []jsonMember // sorted; of those with one name the last
}

type jsonMember struct {
	name   []byte
	quoted []byte // the name as it is written
	value  jsonValue
}

func (v *jsonValue) isObject() bool { return v.text[0] == '{' }
func (v *jsonValue) isNull() bool   { return v.text[0] == 'n' }

// appendMerged is the algorithm of RFC 7396, section 2, for sorted members. What is not
// an object has none.
func appendMerged(b []byte, target, patch jsonValue) []byte {
	if !patch.isObject() {
		return append(b, patch.text...)
	}
	b = append(b, '{')
	empty := len(b)
	name := func(m *jsonMember) {
		if len(b) > empty {
			b = append(b, ',')
		}
		b = append(append(b, m.quoted...), ':')
	}
	old := target.members
	for i := range patch.members {
		change := &patch.members[i]
		for len(old) > 0 && bytes.Compare(old[0].name, change.name) < 0 {
			name(&old[0])
			b = append(b, old[0].value.text...)
			old = old[1:]
		}
		var before jsonValue
		if len(old) > 0 && bytes.Equal(old[0].name, change.name) {
			before, old = old[0].value, old[1:]
		}
		if !change.value.isNull() {
			name(change)
			b = appendMerged(b, before, change.value)
		}
	}
	for i := range old {
		name(&old[i])
		b = append(b, old[i].value.text...)
	}
	return append(b, '}')
}

// readJSON reads a JSON value that is known to be valid.
func readJSON(text []byte) jsonValue {
	var b bytes.Buffer
	b.Grow(len(text))
	if err := json.Compact(&b, text); err != nil {
		panic("engine: valid JSON cannot be read: " + err.Error())
	}
	r := jsonReader{b.Bytes()}
	return r.value()
}

// jsonReader takes values off the front of valid JSON without spaces.
type jsonReader struct{ rest []byte }

func (r *jsonReader) value() (v jsonValue) {
	whole := r.rest
	switch whole[0] {
	case '{':
		v.members = r.object()
	case '[':
		r.array()
	case '"':
		r.string()
	default:
		n := bytes.IndexAny(whole, ",]}")
		if n < 0 {
			n = len(whole)
		}
		r.rest = whole[n:]
	}
	v.text = whole[:len(whole)-len(r.rest)]
	return v
}

func (r *jsonReader) object() (list []jsonMember) {
	for r.rest[0] != '}' || len(list) == 0 {
		r.rest = r.rest[1:] // the brace, or a comma
		if r.rest[0] == '}' {
			break
		}
		m := jsonMember{quoted: r.string()}
		m.name = unquoted(m.quoted)
		r.rest = r.rest[1:] // the colon
		m.value = r.value()
		list = append(list, m)
	}
	r.rest = r.rest[1:]
	return lastOfEach(list)
}

// lastOfEach sorts members by their names, and keeps the last of those with one name.
func lastOfEach(list []jsonMember) []jsonMember {
	if ascending(list) {
		return list
	}
	order := make([]int32, len(list)) // which are moved faster than members
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		return cmp.Or(bytes.Compare(list[i].name, list[j].name), cmp.Compare(i, j))
	})
	last := make([]jsonMember, 0, len(list))
	for n, i := range order {
		if n+1 == len(order) || !bytes.Equal(list[order[n+1]].name, list[i].name) {
			last = append(last, list[i])
		}
	}
	return last
}

// ascending reports whether members are sorted, and no two have one name.
func ascending(list []jsonMember) bool {
	for i := 1; i < len(list); i++ {
		if bytes.Compare(list[i-1].name, list[i].name) >= 0 {
			return false
		}
	}
	return true
}

// array skips a list. A patch replaces it as a whole, so nothing of it is read.
func (r *jsonReader) array() {
	for depth := 0; ; {
		switch r.rest[0] {
		case '"':
			r.string()
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if r.rest = r.rest[1:]; depth == 0 {
			return
		}
	}
}

func (r *jsonReader) string() (quoted []byte) {
	n := 1
	for r.rest[n] != '"' {
		if r.rest[n] == '\\' {
			n++
		}
		n++
	}
	quoted, r.rest = r.rest[:n+1], r.rest[n+1:]
	return quoted
}

// unquoted gives the text that a string stands for.
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
