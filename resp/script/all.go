package script

// all returns the normal form of a script with loops over its keys. Each loop is followed through one turn, in each
// case of its key: it either checks that all keys are in one state, or writes to those that are.
func all(b *node, v int) *Program {
	p := &Program{Value: v, All: &All{}}
	a := p.All
	counters := map[string]bool{}
	need, checked, wrote := []state{free, other, equal, lasts}, false, false
	var counter string
	var end *follower
	for _, n := range b.kids {
		f := &follower{value: v, line: n.line}
		switch {
		case n.form == local && len(n.names) == 1 && len(n.kids) == 1 && n.kids[0].form == number && n.kids[0].text == "0":
			counters[n.names[0]] = true
		case n.form == loop && !wrote:
			turns := map[state]*follower{}
			for _, s := range need {
				turns[s] = p.turn(n, s, counters)
			}
			if !checked && counter == "" && someReturn(turns) {
				need, a.Fail, checked = p.check(need, turns), turns[other].outcome(), true
				continue
			}
			counter, wrote = p.writes(need, turns, counters), true
		case n.form == giveBack && len(n.kids) == 1 && wrote:
			for name := range counters {
				f.locals = append(f.locals, variable{name, integer(0)})
				if name == counter {
					f.find(name).value = value{kind: isCount, s: name}
				}
			}
			f.statement(n)
			end = f
		default:
			f.fail("a script about all keys has something else than its loops")
		}
	}
	if end == nil {
		panic(refuse(b.line, "a script about all keys returns nothing"))
	}
	switch end.result {
	case value{kind: isKeyCount}:
		if a.Op == Delete {
			end.fail("it returns the number of all keys, whether they had the value or not")
		}
		a.Count = true
	case value{kind: isCount, s: counter}:
		a.Count = true
	default:
		if a.N = end.outcome().N; end.outcome().Answer != Int {
			end.fail("it returns no number")
		}
	}
	if a.Op == Delete && !a.Count {
		end.fail("it does not return how many keys had the value")
	}
	if p.Args < v {
		end.fail("it compares no value")
	}
	return p
}

// turn follows one turn of a loop.
func (p *Program) turn(n *node, s state, counters map[string]bool) *follower {
	f := &follower{state: s, value: p.Value, looped: true, line: n.line, args: p.Args, counters: len(counters)}
	for name := range counters {
		f.locals = append(f.locals, variable{name, value{kind: isCount, s: name}})
	}
	f.locals = append(f.locals, variable{n.names[0], value{kind: isTurn}})
	if len(n.names) > 1 {
		f.locals = append(f.locals, variable{n.names[1], value{kind: isKey}})
	}
	f.follow(n.kids[0])
	if f.ifArg > 0 || f.prefix > 0 || f.number > 0 {
		f.fail("it compares what no lock's script compares")
	}
	p.Args = f.args
	return f
}

// someReturn reports whether some turn ends the script.
func someReturn(turns map[state]*follower) bool {
	for _, t := range turns {
		if t.returned {
			return true
		}
	}
	return false
}

// check returns the states in which a loop that checks goes on.
func (p *Program) check(need []state, turns map[state]*follower) (pass []state) {
	var fails Case
	for _, s := range need {
		t := turns[s]
		switch {
		case t.wrote.Op != Nothing || t.counted() != "":
			t.fail("it writes and checks in one loop")
		case !t.returned:
			pass = append(pass, s)
		case fails != (Case{}) && fails != t.outcome():
			t.fail("it returns different things for keys that are not as they should be")
		default:
			fails = t.outcome()
		}
	}
	ok := len(pass) == 1 && pass[0] == free || len(pass) == 2 && pass[0] == equal
	if !ok || fails.Answer == TTL {
		turns[other].fail("it checks for something else than keys that are all free, or have all the value")
	}
	return pass
}

// writes takes over what a loop writes, and returns the local that counts it.
func (p *Program) writes(need []state, turns map[state]*follower, counters map[string]bool) (counter string) {
	a := p.All
	for i, s := range need {
		t := turns[s]
		if t.returned {
			t.fail("it writes and checks in one loop")
		}
		mine := s >= equal || len(need) == 1 // with one state only, all keys are free
		if !mine {
			if t.wrote.Op != Nothing || t.counted() != "" {
				t.fail("it writes to a key that does not have the value")
			}
			continue
		}
		op := t.wrote
		if s >= equal && op.Op == Set {
			op.Op = Expire // it has the value
		}
		first := len(need) <= 2 && i == 0 || s == equal
		if !first && (a.Op != op.Op || a.TTL != op.TTL || counter != t.counted()) {
			t.fail("it does different things to keys with the value")
		}
		a.Op, a.TTL, counter = op.Op, op.TTL, t.counted()
	}
	t := turns[need[len(need)-1]]
	ok := a.Op == Set && need[0] == free && len(need) == 1 || a.Op == Expire && len(need) == 2 && a.TTL != (Amount{}) ||
		a.Op == Delete && len(need) == 4 && counter != ""
	if !ok || a.TTL.More || a.Op != Delete && counter != "" {
		t.fail("it does something else to all keys than to set, extend or delete them")
	}
	return counter
}

// counted returns the local that one turn has counted up by one, or "".
func (f *follower) counted() (name string) {
	for _, b := range f.locals[:f.counters] {
		switch {
		case b.value == value{kind: isCount, s: b.name}:
		case b.value == value{kind: isCount, s: b.name, n: 1} && name == "":
			name = b.name
		default:
			f.fail("it counts otherwise than by one")
		}
	}
	return name
}
