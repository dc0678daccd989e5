package engine

// Where tasks come from.
//
// An agent submits many tasks, and all that is said of where they come from and where
// they go is the same for most of them. So that is kept once, for as long as there is a
// task that has it.

// origin is an address that tasks have in common.
type origin struct {
	address
	users int
}

// address is where a task comes from, and where it goes.
type address struct {
	queue, kind, group              string
	agent, flow, session, principal string // its submitter; session is the public name
	sender                          string // the sender that determines the order of messages; "" for no order
}

// origins are those of a namespace, by the prints of their addresses. Of two with one
// print, the later one is not listed, and not shared.
type origins map[print]*origin

// share returns one more task the origin with an address.
func (l *origins) share(a address) *origin {
	at := a.print()
	o := (*l)[at]
	if o == nil || o.address != a {
		listed := o != nil
		if o = (&origin{address: a}); !listed {
			if *l == nil {
				*l = origins{}
			}
			(*l)[at] = o
		}
	}
	o.users++
	return o
}

// leave takes a task from those that have an origin.
func (l origins) leave(o *origin) {
	if o.users--; o.users > 0 {
		return
	}
	if at := o.print(); l[at] == o {
		delete(l, at)
	}
}

func (a *address) print() (p print) {
	for _, text := range a.texts() {
		p.text(text)
	}
	return p
}

func (a *address) texts() [8]string {
	return [...]string{a.queue, a.kind, a.group, a.agent, a.flow, a.session, a.principal, a.sender}
}
