package script

import (
	"fmt"
	"slices"
	"strconv"
)

// A Refusal is the reason why a script is not known.
type Refusal struct {
	Line int
	Text string
}

func (r *Refusal) Error() string { return fmt.Sprintf("line %d: %s", r.Line, r.Text) }

func refuse(line int, format string, args ...any) *Refusal {
	return &Refusal{line, fmt.Sprintf(format, args...)}
}

// form is the kind of a node.
type form uint8

const (
	constant form = iota // text is nil, true or false
	number
	quoted
	name
	index // text is KEYS or ARGV
	call  // text is the function, with its dots
	prefix
	infix // text is the operator
	local // declares names
	assign
	choice // conditions and blocks in turn, and perhaps a last block
	loop   // over KEYS: names are those of the index and perhaps the key
	block
	giveBack
)

// node is a statement or an expression.
type node struct {
	form  form
	text  string
	names []string
	kids  []*node
	line  int
}

// parser reads tokens. It panics with a *Refusal.
type parser struct {
	tokens []token
	line   int // of the token before
	depth  int
}

// mostDepth bounds how deep statements and expressions are nested.
const mostDepth = 200

// parse returns the block that a text is.
func parse(text string) (n *node, err error) {
	tokens, err := tokenise(text)
	if err != nil {
		return nil, err
	}
	defer caught(&err)
	p := &parser{tokens: tokens}
	n = p.block()
	if p.at().text != "" || p.at().quoted {
		p.fail("%q is not expected here", p.at().text)
	}
	return n, nil
}

// caught turns a panic with a *Refusal into an error.
func caught(err *error) {
	switch why := recover().(type) {
	case nil:
	case *Refusal:
		*err = why
	default:
		panic(why)
	}
}

func (p *parser) fail(format string, args ...any) { panic(refuse(p.at().line, format, args...)) }

func (p *parser) at() token { return p.tokens[0] }

func (p *parser) next() token {
	t := p.tokens[0]
	p.line = t.line
	if len(p.tokens) > 1 {
		p.tokens = p.tokens[1:]
	}
	return t
}

// is reports whether the next token is one of these words or signs.
func (p *parser) is(words ...string) bool {
	return !p.at().quoted && slices.Contains(words, p.at().text)
}

// skip goes past a word or a sign, if it is there.
func (p *parser) skip(word string) bool {
	if !p.is(word) {
		return false
	}
	p.next()
	return true
}

func (p *parser) want(word string) {
	if !p.skip(word) {
		p.fail("%q stands where %q is expected", p.at().text, word)
	}
}

// reserved are names that a script may not declare, because they mean something.
var reserved = []string{"KEYS", "ARGV", "redis", "tonumber", "tostring", "string", "ipairs"}

func (p *parser) name() string {
	t := p.next()
	if t.quoted || t.text == "" || !isNameByte(t.text[0]) || t.text[0] <= '9' || isKeyword(t.text) {
		panic(refuse(t.line, "%q is no name", t.text))
	}
	return t.text
}

func (p *parser) newName() string {
	line, n := p.at().line, p.name()
	if slices.Contains(reserved, n) {
		panic(refuse(line, "%s gets another meaning", n))
	}
	return n
}

func (p *parser) deeper() func() {
	if p.depth++; p.depth > mostDepth {
		p.fail("it is nested too deep")
	}
	return func() { p.depth-- }
}

func (p *parser) block() *node {
	defer p.deeper()()
	b := &node{form: block, line: p.at().line}
	for !p.is("end", "else", "elseif", "") {
		line := p.at().line
		if p.skip("return") {
			r := &node{form: giveBack, line: line}
			if !p.is("end", "else", "elseif", ";", "") {
				r.kids = []*node{p.expression(0)}
			}
			p.skip(";")
			b.kids = append(b.kids, r)
			break
		}
		b.kids = append(b.kids, p.statement())
		p.skip(";")
	}
	return b
}

func (p *parser) statement() *node {
	line := p.at().line
	switch {
	case p.skip("local"):
		n := &node{form: local, line: line, names: []string{p.newName()}}
		for p.skip(",") {
			n.names = append(n.names, p.newName())
		}
		if p.skip("=") {
			n.kids = p.list()
		}
		if len(n.kids) > len(n.names) {
			p.fail("there are more values than names")
		}
		return n
	case p.skip("if"):
		n := &node{form: choice, line: line}
		for {
			n.kids = append(n.kids, p.expression(0))
			p.want("then")
			n.kids = append(n.kids, p.block())
			if !p.skip("elseif") {
				break
			}
		}
		if p.skip("else") {
			n.kids = append(n.kids, p.block())
		}
		p.want("end")
		return n
	case p.skip("for"):
		return p.loop(line)
	case p.skip("do"):
		n := p.block()
		p.want("end")
		return n
	case p.is("while", "repeat", "function", "break"):
		p.fail("it has %q", p.at().text)
	}
	e := p.operand()
	switch {
	case e.form == name && p.skip("="):
		return &node{form: assign, text: e.text, line: line, kids: []*node{p.expression(0)}}
	case e.form != call:
		panic(refuse(line, "a statement is neither an assignment nor a call"))
	}
	return e
}

// loop reads a loop over all keys: for i, key in ipairs(KEYS), or for i = 1, #KEYS.
func (p *parser) loop(line int) *node {
	n := &node{form: loop, line: line, names: []string{p.newName()}}
	words := []string{"1", ",", "#", "KEYS"}
	if !p.skip("=") {
		p.want(",")
		n.names, words = append(n.names, p.newName()), []string{"in", "ipairs", "(", "KEYS", ")"}
	}
	for _, word := range append(words, "do") {
		p.want(word)
	}
	n.kids = []*node{p.block()}
	p.want("end")
	return n
}

func (p *parser) list() (list []*node) {
	for {
		list = append(list, p.expression(0))
		if !p.skip(",") {
			return list
		}
	}
}

// levels are the operators between two operands, the weakest first.
var levels = [][]string{{"or"}, {"and"}, {"<", ">", "<=", ">=", "~=", "=="}, {".."}, {"+", "-"}, {"*", "/", "%"}}

func (p *parser) expression(level int) *node {
	defer p.deeper()()
	if level == len(levels) {
		return p.operand()
	}
	left := p.expression(level + 1)
	for p.is(levels[level]...) {
		t := p.next()
		left = &node{form: infix, text: t.text, line: t.line, kids: []*node{left, p.expression(level + 1)}}
	}
	return left
}

func (p *parser) operand() *node {
	t := p.at()
	switch {
	case t.quoted:
		p.next()
		return &node{form: quoted, text: t.text, line: t.line}
	case p.is("nil", "true", "false"):
		p.next()
		return &node{form: constant, text: t.text, line: t.line}
	case p.is("not", "-", "#"):
		defer p.deeper()()
		p.next()
		return &node{form: prefix, text: t.text, line: t.line, kids: []*node{p.operand()}}
	case p.skip("("):
		n := p.expression(0)
		p.want(")")
		if p.is("(", "[", ".", ":") {
			p.fail("%q follows parentheses", p.at().text)
		}
		return n
	case t.text != "" && t.text[0] >= '0' && t.text[0] <= '9':
		p.next()
		if _, err := strconv.ParseInt(t.text, 10, 32); err != nil {
			panic(refuse(t.line, "%s is no small whole number", t.text))
		}
		return &node{form: number, text: t.text, line: t.line}
	}
	n := &node{form: name, text: p.name(), line: t.line}
	for p.skip(".") {
		n.text += "." + p.name()
	}
	if p.is("(") && p.at().line > p.line {
		p.fail("parentheses stand on another line than their function")
	}
	switch {
	case p.skip("("):
		n.form = call
		if !p.is(")") {
			n.kids = p.list()
		}
		p.want(")")
	case n.text == "KEYS" || n.text == "ARGV":
		n.form = index
		if p.skip("[") {
			n.kids = []*node{p.expression(0)}
			p.want("]")
		}
	}
	if p.is("(", "[", ".", ":", "{") || p.at().quoted {
		p.fail("%q is not expected here", p.at().text)
	}
	return n
}
