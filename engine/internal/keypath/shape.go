package keypath

import (
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// Shape is the parsed form of a pattern's shape: see interlock.Pattern. A variable
// ends at the first place where the text after it stands, so a key fits in one
// way or not at all, and matching costs one pass.
type Shape struct {
	parts []part
	rest  string // name of the variable for the remaining segments; "" for none
}

// part is literal text, then a variable. The last one may have no variable.
type part struct {
	text string
	name string
	kind varKind
}

type varKind uint8

const (
	anyText varKind = iota
	decimal         // leading zeros are dropped
	lowered         // upper case is made lower case
)

// MaxVariables bounds the variables of a shape, without one for the remaining segments.
const MaxVariables = 16

// ParseShape parses a shape, or returns its defect.
func ParseShape(s string) (sh Shape, problem *message.Text) {
	if s == "" || len(s) > interlock.MaxShapeBytes {
		return sh, message.New(message.ShapeLength, message.Num(interlock.MaxShapeBytes))
	}
	seen := map[string]bool{}
	for left := s; left != ""; {
		open := strings.IndexByte(left, '{')
		if open < 0 {
			open = len(left)
		}
		p := part{text: left[:open]}
		if strings.ContainsRune(p.text, '}') {
			return sh, message.New(message.ShapeBraceClosed)
		}
		if left = left[open:]; left == "" {
			sh.parts = append(sh.parts, p)
			break
		}
		end := strings.IndexByte(left, '}')
		if end < 0 {
			return sh, message.New(message.ShapeBraceOpen)
		}
		variable := left[1:end]
		left = left[end+1:]
		name, kind, _ := strings.Cut(variable, ":")
		if name, ok := strings.CutSuffix(variable, "..."); ok {
			if left != "" || !strings.HasSuffix(p.text, "/") {
				return sh, message.New(message.ShapeRestLast, message.Str(variable))
			}
			if !isWord(name) || seen[name] {
				return sh, message.New(message.ShapeVariableName, message.Str(variable))
			}
			sh.rest = name
			if p.text = strings.TrimSuffix(p.text, "/"); p.text != "" || len(sh.parts) == 0 {
				sh.parts = append(sh.parts, p)
			}
			break
		}
		if !isWord(name) || seen[name] {
			return sh, message.New(message.ShapeVariableName, message.Str(variable))
		}
		seen[name] = true
		switch kind {
		case "":
		case "int":
			p.kind = decimal
		case "lower":
			p.kind = lowered
		default:
			return sh, message.New(message.ShapeVariableKind, message.Str(variable))
		}
		if p.text == "" && len(sh.parts) > 0 {
			return sh, message.New(message.ShapeAmbiguous)
		}
		if p.name = name; len(seen) > MaxVariables {
			return sh, message.New(message.ShapeVariableCount, message.Num(MaxVariables))
		}
		sh.parts = append(sh.parts, p)
	}
	// The shape filled with harmless values must be a key, or nothing ever fits it.
	if problem := Problem(sh.Fill(slices.Repeat([]string{"1"}, len(sh.Names())))); problem != nil {
		return sh, message.New(message.ShapeFitsNone, message.Sub(problem))
	}
	return sh, nil
}

// isWord reports whether s is a name for a variable.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 32
}

// Prefix returns the literal text with which all keys that fit begin.
func (sh *Shape) Prefix() string {
	if len(sh.parts) == 0 {
		return ""
	}
	return sh.parts[0].text
}

// Words returns the words of the literal text behind the first variable.
func (sh *Shape) Words() (words []string) {
	for _, p := range sh.parts[1:] {
		words = append(words, Words(p.text)...)
	}
	return words
}

// TakesRest reports whether the last variable takes all remaining segments.
func (sh *Shape) TakesRest() bool { return sh.rest != "" }

// Literal returns the number of bytes of literal text: how specific the shape is.
func (sh *Shape) Literal() (n int) {
	for _, p := range sh.parts {
		n += len(p.text)
	}
	return n
}

// Typed returns the number of variables that do not take any text.
func (sh *Shape) Typed() (n int) {
	for _, p := range sh.parts {
		if p.kind != anyText {
			n++
		}
	}
	return n
}

// Form returns the shape without the names of its variables: two shapes of one form fit
// the same keys.
func (sh *Shape) Form() string {
	var b strings.Builder
	for _, p := range sh.parts {
		b.WriteString(p.text)
		if p.name != "" {
			b.WriteString([...]string{anyText: "{}", decimal: "{:int}", lowered: "{:lower}"}[p.kind])
		}
	}
	if sh.rest != "" {
		b.WriteString("/{...}")
	}
	return b.String()
}

// Names returns the names of the variables, the last one included, in the order of the text.
func (sh *Shape) Names() (names []string) {
	for _, p := range sh.parts {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	if sh.rest != "" {
		names = append(names, sh.rest)
	}
	return names
}

// Match appends the values of the variables in a key that fits, in the order of
// names.
func (sh *Shape) Match(values []string, key string) (_ []string, ok bool) {
	for i, p := range sh.parts {
		rest, fits := strings.CutPrefix(key, p.text)
		if !fits {
			return nil, false
		}
		if key = rest; p.name == "" {
			continue
		}
		end := strings.IndexByte(key, '/')
		if end < 0 {
			end = len(key)
		}
		if i+1 < len(sh.parts) && sh.parts[i+1].text != "" && end > 0 {
			next := strings.Index(key[1:], sh.parts[i+1].text)
			if next < 0 || next+1 > end {
				return nil, false
			}
			end = next + 1
		}
		value, fits := p.kind.canonical(key[:end])
		if !fits {
			return nil, false
		}
		values, key = append(values, value), key[end:]
	}
	switch {
	case sh.rest == "":
		return values, key == ""
	case key != "" && key[0] != '/':
		return nil, false
	}
	return append(values, strings.TrimPrefix(key, "/")), true
}

// canonical returns the one spelling of a variable's value.
func (k varKind) canonical(s string) (string, bool) {
	switch k {
	case decimal:
		if strings.Trim(s, "0123456789") != "" {
			return "", false
		}
		if trimmed := strings.TrimLeft(s, "0"); trimmed != "" || s == "" {
			return trimmed, s != ""
		}
		return "0", true
	case lowered:
		s = strings.ToLower(s)
	}
	return s, s != ""
}

// Fill returns the shape with values for its variables, in the order of names.
func (sh *Shape) Fill(values []string) string {
	var b strings.Builder
	for _, p := range sh.parts {
		b.WriteString(p.text)
		if p.name != "" {
			b.WriteString(values[0])
			values = values[1:]
		}
	}
	if sh.rest != "" && values[0] != "" {
		b.WriteString("/" + values[0])
	}
	return b.String()
}

// Respells reports whether a key that fits may have another spelling.
func (sh *Shape) Respells() bool {
	return slices.ContainsFunc(sh.parts, func(p part) bool { return p.kind != anyText })
}

// MayLieBelow reports whether a key below another one may fit the shape, in its own
// spelling.
func (sh *Shape) MayLieBelow(above string) bool {
	key := above + "/" // what such a key begins with
	for i, p := range sh.parts {
		if strings.HasPrefix(p.text, key) {
			return len(p.text) > len(key) || p.name != ""
		}
		rest, fits := strings.CutPrefix(key, p.text)
		if !fits {
			return false
		}
		if key = rest; p.name == "" {
			continue
		}
		next := ""
		if i+1 < len(sh.parts) {
			next = sh.parts[i+1].text
		}
		value, open := variableIn(key, next)
		if canonical, ok := p.kind.canonical(value); !ok || canonical != value {
			return false
		}
		if open {
			return true
		}
		key = key[len(value):]
	}
	return sh.rest != "" && key[0] == '/'
}

// variableIn returns the value of a variable with which key begins and that the text next
// follows; none if it cannot. With open, key ends within that text.
func variableIn(key, next string) (value string, open bool) {
	slash := strings.IndexByte(key, '/') // key ends with one
	if next == "" {
		return key[:slash], false
	}
	for end := 1; end <= slash; end++ {
		if strings.HasPrefix(key[end:], next) {
			return key[:end], false
		}
		if strings.HasPrefix(next, key[end:]) {
			return key[:end], true
		}
	}
	return "", false
}

// CoversBelow reports whether all keys below a key fit the shape, in their own spelling.
func (sh *Shape) CoversBelow(above string) bool {
	if sh.rest == "" {
		return false
	}
	var room [MaxVariables + 1]string
	values, ok := sh.Match(room[:0], above)
	return ok && sh.Fill(values) == above
}
