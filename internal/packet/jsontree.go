package packet

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep a document may be nested to be compared by its members.
const maxDepth = 256

type kind byte

const (
	scalar kind = iota
	array
	object
)

// tree is a JSON value and where it stands in its text.
type tree struct {
	id       int32 // two trees of one trees are equal exactly if their ids are
	kind     kind
	from, to int
	names    []string // of an object's members, sorted
	kids     []*tree  // members in the order of names, or elements
}

// ids lists those of a tree's elements. They are runes for the search for common
// elements, to which they are no more than numbers.
func (t *tree) ids() []rune {
	ids := make([]rune, len(t.kids))
	for i, kid := range t.kids {
		ids[i] = kid.id
	}
	return ids
}

// trees numbers the different values of several documents. A value is known by its
// kind and the numbers of its parts, so that equality costs nothing however large
// two values are.
type trees struct {
	known map[string]int32
	key   []byte // of the value that is looked up, kept for the next one
	text  []byte
	dec   *json.Decoder
}

func newTrees() *trees { return &trees{known: map[string]int32{}} }

// parse reads a document. It is not ok for a text that is no JSON, is nested too deep, or has a
// string that is not Unicode, which JSON can write and Go cannot tell apart.
func (t *trees) parse(text []byte) (root *tree, ok bool) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, false
	}
	t.text, t.dec = text, json.NewDecoder(bytes.NewReader(text))
	t.dec.UseNumber()
	root = t.value(0)
	return root, root != nil
}

// value reads the next value, or returns nil.
func (t *trees) value(depth int) *tree {
	if depth > maxDepth {
		return nil
	}
	n := &tree{from: t.start()}
	token, err := t.dec.Token()
	if err != nil {
		return nil
	}
	var content []byte
	switch token := token.(type) {
	case json.Delim:
		n.kind = array
		if token == '{' {
			n.kind = object
			if !t.members(n, depth) {
				return nil
			}
		} else if !t.elements(n, depth) {
			return nil
		}
		for i, kid := range n.kids {
			if n.kind == object {
				content = binary.AppendUvarint(content, uint64(t.number('n', []byte(n.names[i]))))
			}
			content = binary.AppendUvarint(content, uint64(kid.id))
		}
	case string:
		if strings.ContainsRune(token, utf8.RuneError) {
			return nil
		}
		content = append([]byte{'"'}, token...)
	case json.Number:
		content = []byte(token)
	case bool:
		content = []byte{'f'}
		if token {
			content[0] = 't'
		}
	}
	n.to = int(t.dec.InputOffset())
	n.id = t.number('0'+byte(n.kind), content)
	return n
}

// start is where the next value begins: after what separates it from the one before.
func (t *trees) start() int {
	at := int(t.dec.InputOffset())
	for at < len(t.text) && strings.IndexByte(" \t\r\n,:", t.text[at]) >= 0 {
		at++
	}
	return at
}

// members reads an object up to its end. Of members with one name the last counts.
func (t *trees) members(n *tree, depth int) bool {
	members := map[string]*tree{}
	for t.dec.More() {
		token, err := t.dec.Token()
		name, ok := token.(string)
		if err != nil || !ok || strings.ContainsRune(name, utf8.RuneError) {
			return false
		}
		kid := t.value(depth + 1)
		if kid == nil {
			return false
		}
		if members[name] == nil {
			n.names = append(n.names, name)
		}
		members[name] = kid
	}
	slices.Sort(n.names)
	n.kids = make([]*tree, len(n.names))
	for i, name := range n.names {
		n.kids[i] = members[name]
	}
	_, err := t.dec.Token()
	return err == nil
}

func (t *trees) elements(n *tree, depth int) bool {
	for t.dec.More() {
		kid := t.value(depth + 1)
		if kid == nil {
			return false
		}
		n.kids = append(n.kids, kid)
	}
	_, err := t.dec.Token()
	return err == nil
}

// number returns the number of a value, the same for the same value.
func (t *trees) number(kind byte, content []byte) int32 {
	t.key = append(append(t.key[:0], kind), content...)
	id, ok := t.known[string(t.key)]
	if !ok {
		id = int32(len(t.known))
		t.known[string(t.key)] = id
	}
	return id
}
