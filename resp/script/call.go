package script

import (
	"strings"
	"time"
)

// call is a call of a function.
func (f *follower) call(n *node) value {
	args := make([]value, len(n.kids))
	for i, kid := range n.kids {
		args[i] = f.eval(kid)
	}
	f.line = n.line
	switch {
	case (n.text == "redis.call" || n.text == "redis.pcall") && len(args) > 1 && args[0].kind == isText:
		if strings.EqualFold(args[0].s, "publish") && len(args) == 3 && said(args[1]) && said(args[2]) {
			return value{kind: isUnknown} // it has no receivers here
		}
		if args[1].kind != isKey {
			f.fail("%s is about something else than its key", args[0].s)
		}
		return f.command(strings.ToLower(args[0].s), args[2:])
	case n.text == "redis.status_reply" && len(args) == 1 && args[0].kind == isText:
		return value{kind: isStatus, s: args[0].s}
	case n.text == "redis.error_reply" && len(args) == 1 && args[0].kind == isText:
		return value{kind: isError, s: args[0].s}
	case n.text == "tonumber" && len(args) == 1 && args[0].kind == isArg:
		return value{kind: isArgNumber, n: args[0].n}
	case n.text == "tonumber" && len(args) == 1 && (args[0].kind == isInt || args[0].kind == isArgNumber):
		return args[0]
	case n.text == "tostring" && len(args) == 1 && (args[0].kind == isArg || args[0].kind == isText):
		return args[0]
	case n.text == "string.sub" && len(args) == 3 && args[0] == (value{kind: isArg, n: f.value}) &&
		args[1] == integer(1) && args[2].kind == isArgNumber && args[2].less == 0:
		f.calculate(args[2].n)
		return value{kind: isBeginning, n: args[2].n}
	}
	f.fail("it calls %s in a way that no lock's script does", n.text)
	return value{}
}

// said reports whether a value is a text or a number.
func said(v value) bool {
	return v.kind == isText || v.kind == isInt || v.kind == isArg || v.kind == isKey || v.kind == isValue
}

// command is what a command about the key does and answers.
func (f *follower) command(name string, args []value) value {
	if f.wrote.Op != Nothing && (f.wrote.Op != Set || f.wrote.TTL != (Amount{}) || !strings.HasSuffix(name, "expire")) {
		f.fail("it calls %s after it has written", name)
	}
	f.compared = true
	here := f.state != free
	switch {
	case name == "get" && len(args) == 0:
		if !here {
			return truth(false)
		}
		return value{kind: isValue}
	case name == "exists" && len(args) == 0:
		return integer(one(here))
	case (name == "ttl" || name == "pttl") && len(args) == 0:
		return f.ttl(map[string]time.Duration{"ttl": time.Second, "pttl": time.Millisecond}[name])
	case name == "getrange" && len(args) == 2 && args[0] == integer(0) && args[1].kind == isArgNumber &&
		args[1].less == 1:
		return value{kind: isPart, n: args[1].n}
	case (name == "del" || name == "unlink") && len(args) == 0:
		if here {
			f.wrote = write{Op: Delete}
		}
		return integer(one(here))
	case name == "expire" && len(args) == 1:
		return f.expire(args[0], time.Second)
	case name == "pexpire" && len(args) == 1:
		return f.expire(args[0], time.Millisecond)
	case name == "setnx" && len(args) == 1:
		return integer(one(f.set(args[0], Amount{}, !here)))
	case name == "setex" && len(args) == 2:
		f.set(args[1], f.amount(args[0], time.Second), true)
		return value{kind: isStatus, s: "OK"}
	case name == "psetex" && len(args) == 2:
		f.set(args[1], f.amount(args[0], time.Millisecond), true)
		return value{kind: isStatus, s: "OK"}
	case name == "set" && len(args) > 0:
		return f.setWith(args)
	}
	f.fail("it calls %s, which no lock's script calls so", name)
	return value{}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (f *follower) ttl(unit time.Duration) value {
	switch f.state {
	case free:
		return integer(-2)
	case lasts:
		return integer(-1)
	case equal:
		return value{kind: isTTL, unit: unit}
	}
	return value{kind: isUnknown}
}

// amount is a time that a command is given.
func (f *follower) amount(v value, unit time.Duration) Amount {
	switch {
	case v.kind == isInt && v.n > 0:
		return Amount{Fixed: time.Duration(v.n) * unit, Unit: unit}
	case (v.kind == isArg || v.kind == isArgNumber && v.less == 0) && v.n != f.value:
		return Amount{Arg: v.n, Unit: unit}
	case v.kind == isSum && v.n != f.value && unit == time.Millisecond:
		return Amount{Arg: v.n, Unit: unit, More: true}
	}
	f.fail("it sets a ttl that no lock's script sets")
	return Amount{}
}

func (f *follower) expire(v value, unit time.Duration) value {
	ttl := f.amount(v, unit)
	switch {
	case f.wrote.Op == Set:
		f.wrote.TTL = ttl
		return integer(1)
	case f.state == free:
		return integer(0)
	}
	f.wrote = write{Op: Expire, TTL: ttl}
	return integer(1)
}

// set writes the value, if it is to be written.
func (f *follower) set(v value, ttl Amount, really bool) bool {
	if v != (value{kind: isArg, n: f.value}) {
		f.fail("it sets something else than the value")
	}
	if really {
		f.wrote = write{Op: Set, TTL: ttl}
	}
	return really
}

// setWith is SET with its options.
func (f *follower) setWith(args []value) value {
	var ttl Amount
	nx, xx := false, false
	for i := 1; i < len(args); i++ {
		option := ""
		if args[i].kind == isText {
			option = strings.ToLower(args[i].s)
		}
		unit := map[string]time.Duration{"ex": time.Second, "px": time.Millisecond}[option]
		switch {
		case option == "nx":
			nx = true
		case option == "xx":
			xx = true
		case unit > 0 && ttl == (Amount{}) && i+1 < len(args):
			i++
			ttl = f.amount(args[i], unit)
		default:
			f.fail("it calls set with an option that no lock's script has")
		}
	}
	if nx && xx {
		f.fail("it calls set with NX and XX")
	}
	if !f.set(args[0], ttl, !(nx && f.state != free || xx && f.state == free)) {
		return truth(false)
	}
	return value{kind: isStatus, s: "OK"}
}
