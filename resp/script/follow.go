package script

import (
	"strconv"
	"time"
)

// state is what a key is in one case.
type state uint8

const (
	free  state = iota
	other       // it has another value
	akin        // it has another value that begins with the same bytes
	equal       // it has the value, and a ttl
	lasts       // it has the value, and no ttl
	states
)

// kind is what a value of Lua is, as far as it is known.
type kind uint8

const (
	isNil       kind = iota
	isFalse          // also what redis.call returns for nothing
	isTrue           //
	isInt            // n
	isText           // s
	isStatus         // s
	isError          // s
	isArg            // ARGV[n]
	isArgNumber      // tonumber(ARGV[n]), with less taken off
	isValue          // of the key
	isTTL            // of the key, in unit
	isSum            // ARGV[n] and the ttl of the key in ms
	isKey            // KEYS[1], or in a loop the key of this turn
	isKeys           // KEYS
	isKeyCount       // #KEYS
	isTurn           // the index of a loop
	isCount          // n more than the local s had before this turn of a loop
	isPart           // the first ARGV[n] bytes of the key's value
	isBeginning      // the first ARGV[n] bytes of the value that is asked for
	isUnknown        // what differs within a case
)

// value is a value of Lua.
type value struct {
	kind kind
	n    int
	less int
	s    string
	unit time.Duration
}

func integer(n int) value { return value{kind: isInt, n: n} }

func truth(b bool) value {
	if b {
		return value{kind: isTrue}
	}
	return value{kind: isFalse}
}

// truthy reports whether a value counts as true.
func (f *follower) truthy(v value) bool {
	if v.kind == isArgNumber {
		f.fail("it depends on whether an argument is a number")
	}
	return v.kind != isNil && v.kind != isFalse
}

// variable is a local.
type variable struct {
	name  string
	value value
}

// follower follows a script through one case. It panics with a *Refusal.
type follower struct {
	state    state
	value    int // which argument the value is
	locals   []variable
	looped   bool // it is in a loop, about the key of the turn
	counters int  // how many of the locals count turns

	args     int    // that the script uses
	compared bool   // the key was looked at
	ifArg    int    // an argument that is compared with a text
	ifText   string //
	assume   bool   // that it is the text
	number   int    // the argument that is calculated with
	prefix   int    // the argument with the length of the beginning that is compared

	wrote    write
	returned bool
	result   value
	line     int
}

func (f *follower) fail(format string, args ...any) { panic(refuse(f.line, format, args...)) }

// follow carries out a block.
func (f *follower) follow(b *node) {
	outside := len(f.locals)
	for _, n := range b.kids {
		if f.returned {
			return
		}
		f.statement(n)
	}
	f.locals = f.locals[:outside]
}

func (f *follower) statement(n *node) {
	f.line = n.line
	switch n.form {
	case local:
		values := make([]value, len(n.names))
		for i, kid := range n.kids {
			values[i] = f.eval(kid)
		}
		for i, name := range n.names {
			f.locals = append(f.locals, variable{name, values[i]})
		}
	case assign:
		v := f.eval(n.kids[0])
		f.find(n.text).value = v
	case choice:
		for i := 0; i < len(n.kids); i += 2 {
			if i == len(n.kids)-1 {
				f.follow(n.kids[i])
			} else if f.truthy(f.eval(n.kids[i])) {
				f.follow(n.kids[i+1])
				break
			}
		}
	case block:
		f.follow(n)
	case giveBack:
		if f.result = (value{}); len(n.kids) > 0 {
			f.result = f.eval(n.kids[0])
		}
		f.returned, f.line = true, n.line
	case call:
		f.eval(n)
	case loop:
		f.fail("a loop stands where none is expected")
	default:
		f.fail("it has a statement that is not known")
	}
}

// find returns a local.
func (f *follower) find(name string) *variable {
	for i := len(f.locals) - 1; i >= 0; i-- {
		if f.locals[i].name == name {
			return &f.locals[i]
		}
	}
	f.fail("%s is no local", name)
	return nil
}

func (f *follower) eval(n *node) value {
	f.line = n.line
	switch n.form {
	case constant:
		switch n.text {
		case "true":
			return truth(true)
		case "false":
			return truth(false)
		}
		return value{}
	case number:
		i, _ := strconv.Atoi(n.text)
		return integer(i)
	case quoted:
		return value{kind: isText, s: n.text}
	case name:
		return f.find(n.text).value
	case index:
		return f.index(n)
	case prefix:
		return f.prefixed(n.text, f.eval(n.kids[0]))
	case infix:
		return f.infixed(n)
	case call:
		return f.call(n)
	}
	f.fail("it has an expression that is not known")
	return value{}
}

// index reads KEYS or ARGV.
func (f *follower) index(n *node) value {
	if len(n.kids) == 0 {
		if n.text == "KEYS" {
			return value{kind: isKeys}
		}
		f.fail("it uses ARGV as a whole")
	}
	i := f.eval(n.kids[0])
	f.line = n.line
	switch {
	case n.text == "KEYS" && (i == integer(1) && !f.looped || i.kind == isTurn && f.looped):
		return value{kind: isKey}
	case n.text == "ARGV" && i.kind == isInt && i.n > 0 && i.n < 10:
		f.args = max(f.args, i.n)
		return value{kind: isArg, n: i.n}
	}
	f.fail("it uses another element of %s than the ones of a lock's script", n.text)
	return value{}
}

func (f *follower) prefixed(op string, v value) value {
	switch {
	case v.kind == isUnknown:
	case op == "not":
		return truth(!f.truthy(v))
	case op == "-" && v.kind == isInt:
		return integer(-v.n)
	case op == "#" && v.kind == isKeys:
		return value{kind: isKeyCount}
	}
	f.fail("%s stands before what it is not known for", op)
	return value{}
}

func (f *follower) infixed(n *node) value {
	left := f.eval(n.kids[0])
	if n.text == "and" || n.text == "or" {
		if left.kind == isUnknown {
			f.fail("it depends on what differs within a case")
		}
		if f.truthy(left) == (n.text == "or") {
			return left
		}
		return f.eval(n.kids[1])
	}
	right := f.eval(n.kids[1])
	f.line = n.line
	switch n.text {
	case "==":
		return truth(f.same(left, right))
	case "~=":
		return truth(!f.same(left, right))
	case "+":
		return f.sum(left, right)
	case "-":
		switch {
		case left.kind == isInt && right.kind == isInt:
			return integer(left.n - right.n)
		case left.kind == isArgNumber && right.kind == isInt:
			f.calculate(left.n)
			left.less += right.n
			return left
		}
	case "<", ">", "<=", ">=":
		return truth(f.order(left, n.text, right))
	}
	f.fail("%s stands between what it is not known for", n.text)
	return value{}
}

// same is a == b.
func (f *follower) same(a, b value) bool {
	if a.kind > b.kind {
		a, b = b, a
	}
	text := func(v value) bool { return v.kind == isText || v.kind == isArg || v.kind == isValue }
	simple := func(v value) bool { return v.kind <= isInt }
	switch {
	case a.kind == isUnknown || b.kind == isUnknown, a.kind == isNil && b.kind == isArgNumber:
	case simple(a) && simple(b), a.kind == isText && b.kind == isText:
		return a == b
	case simple(a) && (text(b) || b.kind == isStatus || b.kind == isError), a.kind <= isTrue:
		return false // of another type
	case a.kind == isArg && b.kind == isValue && a.n == f.value:
		f.compared = true
		return f.state >= equal
	case a.kind == isArg && a == b:
		return true
	case a.kind == isText && b.kind == isArg && b.n != f.value:
		if f.ifArg == 0 {
			f.ifArg, f.ifText = b.n, a.s
		}
		if f.ifArg == b.n && f.ifText == a.s {
			return f.assume
		}
	case a.kind == isPart && b.kind == isBeginning && a.n == b.n && f.state > free:
		if f.prefix != 0 && f.prefix != a.n {
			break
		}
		f.prefix, f.compared = a.n, true
		return f.state >= akin
	case a.kind == isInt && b.kind == isTTL && a.n < 0:
		return false
	}
	f.fail("it compares what no lock's script compares")
	return false
}

// order compares two numbers.
func (f *follower) order(a value, op string, b value) bool {
	if a.kind == isTTL && b == integer(0) || b.kind == isTTL && a == integer(0) {
		// A ttl is above 0 in its case; in seconds it may be rounded to 0.
		number := func(v value, n int) value {
			if v.kind == isTTL {
				return integer(n)
			}
			return v
		}
		above := f.order(number(a, 1), op, number(b, 1))
		if max(a.unit, b.unit) == time.Second && above != f.order(number(a, 0), op, number(b, 0)) {
			f.fail("it depends on whether a ttl is rounded to 0 seconds")
		}
		return above
	}
	if a.kind != isInt || b.kind != isInt {
		f.fail("it compares what no lock's script compares")
	}
	switch op {
	case "<":
		return a.n < b.n
	case ">":
		return a.n > b.n
	case "<=":
		return a.n <= b.n
	}
	return a.n >= b.n
}

// calculate takes note that an argument must be a number.
func (f *follower) calculate(arg int) {
	if f.number != 0 && f.number != arg {
		f.fail("it calculates with several arguments")
	}
	f.number = arg
}

// sum is a + b.
func (f *follower) sum(a, b value) value {
	if a.kind > b.kind {
		a, b = b, a
	}
	switch {
	case a.kind == isInt && b.kind == isInt:
		return integer(a.n + b.n)
	case a.kind == isInt && b.kind == isCount:
		return value{kind: isCount, n: a.n + b.n, s: b.s}
	case (a.kind == isArg || a.kind == isArgNumber && a.less == 0) && b.kind == isTTL && b.unit == time.Millisecond:
		f.calculate(a.n)
		return value{kind: isSum, n: a.n}
	}
	f.fail("it adds what no lock's script adds")
	return value{}
}
