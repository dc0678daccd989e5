package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// jsonIn reads a body strictly. encoding/json is too forgiving for a lock service: it takes names
// in any case, lets the last of two equal names win, and turns bytes that are not UTF-8 into
// U+FFFD, so that two different keys become one. Here every name must be known and stand once, and
// every text must be valid as it stands.
//
// The first problem is kept in err, and every later read does nothing.
type jsonIn struct {
	b    []byte
	i    int
	path []byte // the field that is being read, for messages
	err  *interlock.Error
}

// Bounds of nesting where a body may hold any value: what is shown to people, and
// what is kept as it is.
const (
	maxJSONDepth     = 16
	maxDocumentDepth = 128
)

func (d *jsonIn) fail(format string, args ...any) {
	if d.err == nil {
		d.err = &interlock.Error{Code: interlock.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
	}
}

// want fails with the expected token at this place.
func (d *jsonIn) want(what string) {
	found := "the end of the body"
	if d.i < len(d.b) {
		switch c := d.b[d.i]; {
		case c == '"':
			found = "a string"
		case c == '-' || c >= '0' && c <= '9':
			found = "a number"
		case c == '{':
			found = "an object"
		case c == '[':
			found = "an array"
		case c == 't' || c == 'f':
			found = "true or false"
		case c == 'n':
			found = "null: leave the field out instead"
		default:
			found = strconv.QuoteRuneToASCII(rune(c))
		}
	}
	where := "the body"
	if len(d.path) > 0 {
		where = "field " + string(d.path)
	}
	d.fail("%s: want %s at byte %d, found %s", where, what, d.i, found)
}

func (d *jsonIn) space() {
	for d.i < len(d.b) {
		switch d.b[d.i] {
		case ' ', '\t', '\n', '\r':
			d.i++
		default:
			return
		}
	}
}

// eat takes c when it comes next.
func (d *jsonIn) eat(c byte) bool {
	d.space()
	if d.err == nil && d.i < len(d.b) && d.b[d.i] == c {
		d.i++
		return true
	}
	return false
}

// end fails when anything but space is left.
func (d *jsonIn) end() {
	d.space()
	if d.i < len(d.b) {
		d.path = nil
		d.want("nothing more")
	}
}

// given is a set of fields, by their positions in the list of names of a body.
type given uint64

// object reads an object with members that have some of names, each at most once. read is called
// with the position of the name in names, and must read the value. object returns the members that
// it has found.
func (d *jsonIn) object(names []string, read func(field int)) (seen given) {
	outer := len(d.path)
	if !d.eat('{') {
		d.want("an object")
		return seen
	}
	if d.eat('}') {
		return seen
	}
	for d.err == nil {
		d.space()
		name := d.quoted()
		field := -1
		for i := range names {
			if names[i] == string(name) {
				field = i
				break
			}
		}
		switch {
		case d.err != nil:
			return seen
		case field < 0 && len(names) == 0:
			d.fail("unknown field %s: the body has no fields", strconv.Quote(clipped(string(name))))
			return seen
		case field < 0:
			d.fail("unknown field %s: known are %s", d.member(strconv.Quote(clipped(string(name)))), strings.Join(names, ", "))
			return seen
		case seen&(1<<field) != 0:
			d.fail("field %s occurs twice", d.member(names[field]))
			return seen
		}
		seen |= 1 << field
		if !d.eat(':') {
			d.want("':'")
			return seen
		}
		d.path = d.member(names[field])
		d.space()
		read(field)
		d.path = d.path[:outer]
		if d.eat(',') {
			continue
		}
		if !d.eat('}') {
			d.want("',' or '}'")
		}
		return seen
	}
	return seen
}

// array reads an array; read must read one element. It stops at limit elements
// with the result of tooMany.
func (d *jsonIn) array(limit int, tooMany func() *interlock.Error, read func()) {
	outer := len(d.path)
	defer func() { d.path = d.path[:outer] }()
	if !d.eat('[') {
		d.want("an array")
		return
	}
	if d.eat(']') {
		return
	}
	for n := 0; d.err == nil; n++ {
		if n == limit {
			d.err = tooMany()
			return
		}
		d.path = append(strconv.AppendInt(append(d.path[:outer], '['), int64(n), 10), ']')
		d.space()
		read()
		if d.eat(',') {
			continue
		}
		if !d.eat(']') {
			d.want("',' or ']'")
		}
		return
	}
}

// tooLong is for arrays that nothing more can be said of: it names the one that is
// being read.
func (d *jsonIn) tooLong(limit int) func() *interlock.Error {
	path := string(d.path)
	return func() *interlock.Error {
		return &interlock.Error{
			Code: interlock.CodeInvalidRequest, Message: fmt.Sprintf("field %s: more than %d elements", path, limit),
		}
	}
}

// str reads a string.
func (d *jsonIn) str() string { return string(d.quoted()) }

// quoted reads a string and returns its value, which may be a part of the body.
func (d *jsonIn) quoted() []byte {
	if d.err != nil || d.i >= len(d.b) || d.b[d.i] != '"' {
		d.want("a string")
		return nil
	}
	d.i++
	start := d.i
	for d.i < len(d.b) {
		c := d.b[d.i]
		switch {
		case c == '"':
			s := d.b[start:d.i]
			d.i++
			if !utf8.Valid(s) {
				d.fail("field %s: not valid UTF-8", d.path)
				return nil
			}
			return s
		case c == '\\':
			return d.escaped(start)
		case c < ' ':
			d.want("a control character written as \\u00" + string([]byte{hexDigits[c>>4], hexDigits[c&15]}))
			return nil
		}
		d.i++
	}
	d.want(`'"'`)
	return nil
}

// escaped continues a string at its first backslash.
func (d *jsonIn) escaped(start int) []byte {
	s := append([]byte(nil), d.b[start:d.i]...)
	for d.i < len(d.b) {
		c := d.b[d.i]
		d.i++
		switch {
		case c == '"':
			if !utf8.Valid(s) {
				d.fail("field %s: not valid UTF-8", d.path)
				return nil
			}
			return s
		case c < ' ':
			d.i--
			d.want("a control character written with a backslash")
			return nil
		case c != '\\':
			s = append(s, c)
			continue
		}
		if d.i == len(d.b) {
			break
		}
		c = d.b[d.i]
		d.i++
		switch c {
		case '"', '\\', '/':
			s = append(s, c)
		case 'b':
			s = append(s, '\b')
		case 'f':
			s = append(s, '\f')
		case 'n':
			s = append(s, '\n')
		case 'r':
			s = append(s, '\r')
		case 't':
			s = append(s, '\t')
		case 'u':
			r := d.hex4()
			if utf16.IsSurrogate(r) && d.err == nil {
				if d.i+1 < len(d.b) && d.b[d.i] == '\\' && d.b[d.i+1] == 'u' {
					d.i += 2
					r = utf16.DecodeRune(r, d.hex4())
				} else {
					r = utf8.RuneError
				}
				if r == utf8.RuneError {
					d.fail("field %s: half of a surrogate pair before byte %d", d.path, d.i)
				}
			}
			if d.err != nil {
				return nil
			}
			s = utf8.AppendRune(s, r)
		default:
			d.i--
			d.want("one of the letters that may follow a backslash")
			return nil
		}
	}
	d.want(`'"'`)
	return nil
}

func (d *jsonIn) hex4() rune {
	if d.i+4 <= len(d.b) {
		if v, err := strconv.ParseUint(string(d.b[d.i:d.i+4]), 16, 16); err == nil {
			d.i += 4
			return rune(v)
		}
	}
	d.want("four hexadecimal digits")
	return utf8.RuneError
}

// int reads a whole number.
func (d *jsonIn) int() int64 {
	digits := d.number()
	if digits == nil {
		d.want("a whole number")
		return 0
	}
	v, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		d.fail("field %s: want a whole number within 64 bits, found %s", d.path, clipped(string(digits)))
	}
	return v
}

// number reads a JSON number; nil when there is none.
func (d *jsonIn) number() []byte {
	if d.err != nil {
		return nil
	}
	start, i := d.i, d.i
	digits := func() bool {
		from := i
		for i < len(d.b) && d.b[i] >= '0' && d.b[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(d.b) && d.b[i] == '-' {
		i++
	}
	if i < len(d.b) && d.b[i] == '0' {
		i++
	} else if !digits() {
		return nil
	}
	if i < len(d.b) && d.b[i] == '.' {
		i++
		if !digits() {
			return nil
		}
	}
	if i < len(d.b) && (d.b[i] == 'e' || d.b[i] == 'E') {
		i++
		if i < len(d.b) && (d.b[i] == '+' || d.b[i] == '-') {
			i++
		}
		if !digits() {
			return nil
		}
	}
	d.i = i
	return d.b[start:i]
}

// any skips one value of any kind, nested at most so deep, and returns its bytes.
func (d *jsonIn) any(most int) []byte { return d.nested(1, most) }

func (d *jsonIn) nested(depth, most int) []byte {
	d.space()
	start := d.i
	switch {
	case d.err != nil:
		return nil
	case depth > most:
		d.fail("field %s: nested deeper than %d", d.path, most)
	case d.i >= len(d.b):
		d.want("a value")
	case d.b[d.i] == '{':
		d.i++
		var names memberNames
		for first := true; d.err == nil && !d.eat('}'); first = false {
			if !first && !d.eat(',') {
				d.want("',' or '}'")
			}
			d.space()
			if name := d.quoted(); d.err == nil && !names.add(string(name)) {
				d.fail("field %s: the name %s occurs twice in one object", d.path, strconv.Quote(clipped(string(name))))
			}
			if d.err == nil && !d.eat(':') {
				d.want("':'")
			}
			d.nested(depth+1, most)
		}
	case d.b[d.i] == '[':
		d.i++
		for first := true; d.err == nil && !d.eat(']'); first = false {
			if !first && !d.eat(',') {
				d.want("',' or ']'")
			}
			d.nested(depth+1, most)
		}
	case d.b[d.i] == '"':
		d.quoted()
	case d.word("true"), d.word("false"), d.word("null"):
	default:
		if d.number() == nil {
			d.want("a value")
		}
	}
	if d.err != nil {
		return nil
	}
	return d.b[start:d.i]
}

// memberNames are the names of the members of one object.
type memberNames struct {
	few  []string
	many map[string]bool // instead of few, from some number on
}

// add reports whether a name is new.
func (m *memberNames) add(name string) bool {
	const few = 16
	switch {
	case m.many == nil && slices.Contains(m.few, name), m.many[name]:
		return false
	case m.many == nil && len(m.few) < few:
		m.few = append(m.few, name)
		return true
	case m.many == nil:
		m.many = map[string]bool{}
		for _, known := range m.few {
			m.many[known] = true
		}
	}
	m.many[name] = true
	return true
}

func (d *jsonIn) word(w string) bool {
	if strings.HasPrefix(string(d.b[d.i:min(len(d.b), d.i+len(w))]), w) {
		d.i += len(w)
		return true
	}
	return false
}

// member returns the path of a member of the value being read.
func (d *jsonIn) member(name string) []byte {
	if len(d.path) == 0 {
		return append(d.path, name...)
	}
	return append(append(d.path, '.'), name...)
}

// clipped shortens a caller's text for a message.
func clipped(s string) string {
	const limit = 64
	if len(s) <= limit {
		return s
	}
	n := limit
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
