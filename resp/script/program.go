package script

import (
	"strings"
	"time"
)

// Op is what a script does to its key.
type Op uint8

// The operations. Set sets a key to the value.
const (
	Nothing Op = iota
	Delete
	Expire
	Set
)

// Amount is a ttl: an argument or a fixed time. The zero value is none.
type Amount struct {
	Arg   int // of ARGV, from 1; 0 if Fixed counts
	Fixed time.Duration
	Unit  time.Duration
	More  bool // added to the rest of the ttl
}

type write struct {
	Op  Op
	TTL Amount
}

// Answer is the kind of a result.
type Answer uint8

// The answers.
const (
	Null   Answer = iota
	Int           // N
	Text          // S
	Status        // S
	Error         // S
	TTL           // what the key had left, in Unit
)

// Case is what a script does and returns if its key is in a certain state.
type Case struct {
	Op     Op
	TTL    Amount
	Answer Answer
	N      int64
	S      string
	Unit   time.Duration
}

// Cases are what a script does in each state of its key: not there, with another value, with another value that begins
// with the same bytes, with the value, and with the value and no ttl.
type Cases struct{ Free, Other, Akin, Equal, Lasting Case }

// Program is the normal form of a script.
type Program struct {
	Value  int // which argument, from 1, the key must have as its value
	Args   int // how many arguments it uses
	Number int // the argument that is calculated with, and so must be a number; 0: none
	Prefix int // the argument with the length of the beginning that Akin has in common; 0: Akin is as Other
	IfArg  int // the argument that, if it is IfText, has Then count in place of Cases; 0: none
	IfText string
	Cases  Cases
	Then   Cases
	All    *All // for a script about all of its keys; the cases do not count then
}

// All is what a script does to all of its keys.
type All struct {
	Op   Op // Set: if all are free. Expire: if all have the value. Delete: those that have the value
	TTL  Amount
	Fail Case // the answer if the keys are not so
	N    int64
	// Count has the number of the keys that were written returned, in place of N.
	Count bool
}

// For returns the cases that count with these arguments.
func (p *Program) For(argv [][]byte) *Cases {
	if p.IfArg > 0 && string(argv[p.IfArg-1]) == p.IfText {
		return &p.Then
	}
	return &p.Cases
}

// Takes reports whether the script can be called with so many keys and arguments.
func (p *Program) Takes(keys, args int) bool { return keys > 0 && args >= p.Args }

// Recognise returns the normal form of a script. The error is a *Refusal, with what the script has that no lock's
// script has.
func Recognise(text string) (*Program, error) {
	b, err := parse(text)
	if err != nil {
		return nil, err
	}
	var first error
	for _, v := range []int{1, 2, 3} { // the argument that may be the value
		p, err := normal(b, v)
		if err == nil {
			return p, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// normal returns the normal form of a script, if its value is this argument.
func normal(b *node, v int) (p *Program, err error) {
	defer caught(&err)
	for _, n := range b.kids {
		if n.form == loop {
			return all(b, v), nil
		}
	}
	p = &Program{Value: v}
	cases, plain := p.follow(b, false), *p
	p.Cases = *cases
	if plain.IfArg > 0 {
		p.Then = *p.follow(b, true)
	}
	return p, nil
}

// follow follows a script through all cases of its key.
func (p *Program) follow(b *node, assume bool) *Cases {
	var cases [states]Case
	compared, writes := false, false
	for s := range states {
		f := &follower{
			state: s, value: p.Value, assume: assume, ifArg: p.IfArg, ifText: p.IfText, prefix: p.Prefix, args: p.Args,
			number: p.Number,
		}
		f.follow(b)
		p.IfArg, p.IfText, p.Prefix, p.Args, p.Number = f.ifArg, f.ifText, f.prefix, f.args, f.number
		compared = compared || f.compared
		cases[s] = f.outcome()
		switch c := &cases[s]; {
		case c.Op == Nothing:
		case s == free && c.Op != Set, s == other, s == akin && (p.Prefix == 0 || c.Op != Set):
			f.fail("it writes to a key that does not have the value")
		case c.Op == Set && c.TTL.More:
			f.fail("it sets a ttl that no lock's script sets")
		default:
			writes = true
		}
	}
	if p.Prefix == 0 {
		cases[akin] = cases[other]
	}
	last := b.line
	if len(b.kids) > 0 {
		last = b.kids[len(b.kids)-1].line
	}
	if !compared || !writes && cases[equal] == cases[other] {
		panic(refuse(last, "it does nothing with a lock"))
	}
	if p.Args < p.Value {
		panic(refuse(last, "it compares no value"))
	}
	return &Cases{cases[free], cases[other], cases[akin], cases[equal], cases[lasts]}
}

// outcome is what a script has done and returned in a case.
func (f *follower) outcome() Case {
	c := Case{Op: f.wrote.Op, TTL: f.wrote.TTL}
	switch v := f.result; v.kind {
	case isNil, isFalse:
	case isTrue:
		c.Answer, c.N = Int, 1
	case isInt:
		c.Answer, c.N = Int, int64(v.n)
	case isText:
		c.Answer, c.S = Text, v.s
	case isStatus:
		c.Answer, c.S = Status, v.s
	case isError:
		if v.s == "" || v.s[0] == '-' || v.s[0] == ' ' {
			f.fail("it returns an error that has no first word")
		}
		if c.Answer, c.S = Error, v.s; !strings.Contains(v.s, " ") {
			c.S = "ERR " + v.s
		}
	case isTTL:
		c.Answer, c.Unit = TTL, v.unit
	default:
		f.fail("it returns what no lock's script returns")
	}
	return c
}
