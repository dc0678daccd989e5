package collection

// Table is a hash table. Its members are linked in chains through a field of theirs. A
// member costs the table 8 bytes, a lookup touches one line of memory to find the chain, and a
// removal leaves nothing behind. A Go map costs 38 bytes a member here, touches more memory,
// and has no defined order.
//
// The table grows by a few chains whenever there are more members than chains: the next
// chains in order are split in two (linear hashing: Litwin, 1980). So no operation ever waits
// until all members have moved.
//
//	chains   0  1  2  3 │ 4  5          6 chains: a part of 0 and 1 has moved to 4 and 5,
//	         └split┘       └new┘        so 3 bits of a hash count there, and 2 elsewhere
type Table[M TableMember[M]] struct {
	firsts [][]M // of each chain; in pieces, so that nothing long is ever copied
	chains uint32
	mask   uint32 // the bits of a hash that count in chains that were split
	n      int
}

// TableMember is a member of a Table.
type TableMember[M any] interface {
	comparable
	// Hash returns the member's hash, which must not change while it is in a table.
	Hash() uint32
	// TableNext returns where the member keeps the next one of its chain. Only the table
	// changes the value.
	TableNext() *M
}

const tablePiece = 1024

// splitsAtOnce is how many chains are split together, once there are as many. It
// divides tablePiece.
const splitsAtOnce = 64

// Len returns the number of members.
func (t *Table[M]) Len() int { return t.n }

// First returns the first member of the chain of a hash, or the zero value. The chain also has
// members with other hashes.
func (t *Table[M]) First(hash uint32) (m M) {
	if t.n == 0 {
		return m
	}
	return *t.chain(hash)
}

func (t *Table[M]) chain(hash uint32) *M {
	i := hash & t.mask
	if i >= t.chains {
		i = hash & (t.mask >> 1)
	}
	return &t.firsts[i/tablePiece][i%tablePiece]
}

// Add adds m, which must not be in the table.
func (t *Table[M]) Add(m M) {
	if t.n++; t.n > int(t.chains) {
		t.grow()
	}
	first := t.chain(m.Hash())
	*m.TableNext(), *first = *first, m
}

// Remove removes m, which must be in the table.
func (t *Table[M]) Remove(m M) {
	at := t.chain(m.Hash())
	for *at != m {
		at = (*at).TableNext()
	}
	var none M
	*at, *m.TableNext() = *m.TableNext(), none
	t.n--
}

// grow splits the next chains: it adds as many, and moves to them what belongs there now.
//
// Members are in no cache. So the first of each chain is read before any is moved: these
// reads do not wait for each other, and take little longer than one.
func (t *Table[M]) grow() {
	added, n := t.chains, min(max(t.chains, 1), splitsAtOnce)
	if t.chains += n; added > t.mask {
		t.mask = t.mask<<1 | 1
	}
	if added%tablePiece == 0 {
		t.firsts = append(t.firsts, make([]M, 0, min(added, tablePiece)))
	}
	piece := &t.firsts[added/tablePiece]
	*piece = append(*piece, make([]M, n)...)
	if added == 0 {
		return
	}
	split := added & (t.mask >> 1)
	from, to := t.firsts[split/tablePiece][split%tablePiece:], (*piece)[added%tablePiece:]
	var (
		hashes [splitsAtOnce]uint32
		none   M
	)
	for i := range n {
		if m := from[i]; m != none {
			hashes[i] = m.Hash()
		}
	}
	for i := range n {
		stay, move, hash := &from[i], &to[i], hashes[i]
		for m := *stay; m != none; {
			if hash&t.mask == added+i {
				*stay, *move = *m.TableNext(), m
				move = m.TableNext()
			} else {
				stay = m.TableNext()
			}
			if m = *stay; m != none {
				hash = m.Hash()
			}
		}
		*move = none
	}
}

// Part calls visit with the members of chain i. It reports whether there is such a chain.
func (t *Table[M]) Part(i int, visit func(M)) bool {
	if i >= int(t.chains) {
		return false
	}
	var none M
	for m := t.firsts[i/tablePiece][i%tablePiece]; m != none; m = *m.TableNext() {
		visit(m)
	}
	return true
}

// All returns all members, in an order without meaning.
func (t *Table[M]) All() []M {
	list := make([]M, 0, t.n)
	for i := 0; t.Part(i, func(m M) { list = append(list, m) }); i++ {
	}
	return list
}

// Prefetch reads many chains of tables at once, so that a lookup soon after finds them in the
// processor's cache. It collects as many chains as the processor can have reads under way.
type Prefetch[M TableMember[M]] struct {
	firsts [64]*M
	n      int
	seen   uint32 // without meaning; a read with an unused result would be optimised away
}

// Add collects the chain of a hash.
func (p *Prefetch[M]) Add(t *Table[M], hash uint32) {
	if t.n == 0 {
		return
	}
	p.firsts[p.n] = t.chain(hash)
	if p.n++; p.n == len(p.firsts) {
		p.Read()
	}
}

// Read reads the collected chains: the first member of each, then the second of each that has
// one, and so on. The caller must use the result, which has no meaning.
func (p *Prefetch[M]) Read() uint32 {
	var (
		members [len(p.firsts)]M
		none    M
	)
	for i, first := range p.firsts[:p.n] {
		members[i] = *first
	}
	for p.n > 0 {
		next := 0
		for _, m := range members[:p.n] {
			if m != none {
				p.seen ^= m.Hash()
				members[next] = *m.TableNext()
				next++
			}
		}
		p.n = next
	}
	return p.seen
}
