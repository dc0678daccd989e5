package engine

// roster lists the members of a set, so that a survey can go through them piece by
// piece. Who leaves gives its seat to the last, so the order says nothing.
type roster[M member] []M

// member is what can stand in a roster. Its seat is its index and one; 0 is none.
type member interface {
	comparable
	seatOf() *int32
}

func (r *request) seatOf() *int32 { return &r.seat }

// part visits the member with a number; it gives false when there is none.
func (l roster[M]) part(i int, visit func(M)) bool {
	if i >= len(l) {
		return false
	}
	visit(l[i])
	return true
}

func (l *roster[M]) enter(m M) {
	*l = append(*l, m)
	*m.seatOf() = int32(len(*l))
}

func (l *roster[M]) leave(m M) {
	seat, list := m.seatOf(), *l
	if *seat == 0 {
		return
	}
	var none M
	last := list[len(list)-1]
	list[*seat-1], *last.seatOf() = last, *seat
	list[len(list)-1] = none
	*l, *seat = list[:len(list)-1], 0
}
