package engine

import (
	"encoding/binary"
	"math/bits"
)

// table finds its members by a hash. They hang in chains that are part of them, one for
// each hash that the table tells apart, so a member costs the table 8 bytes, one line
// of memory is touched to find a chain, and who leaves leaves nothing behind. A map
// costs 38 bytes a member here, touches more, and is not walked in a defined order.
//
// It grows by some chains whenever there are more members than chains: the next chains in
// order are split in two (linear hashing: Litwin, 1980). So no member ever waits until
// all others have moved.
//
//	chains   0  1  2  3 │ 4  5          6 chains: of 0 and 1 a part has moved to 4 and 5,
//	         └split┘       └new┘        so 3 bits of a hash count there, and 2 elsewhere
type table[M linked[M]] struct {
	firsts [][]M // of each chain; in pieces, so that nothing long is ever copied
	chains uint32
	mask   uint32 // the bits of a hash that count in chains that were split
	n      int
}

// linked is what can be in a table. next is for the table alone.
type linked[M any] interface {
	comparable
	hash() uint32
	nextOf() *M
}

const tablePiece = 1024

// splitsAtOnce is how many chains are split together, once there are as many. It
// divides tablePiece.
const splitsAtOnce = 64

// first gives the first member of the chain in which those with a hash are.
func (t *table[M]) first(hash uint32) (m M) {
	if t.n == 0 {
		return m
	}
	return *t.chain(hash)
}

func (t *table[M]) chain(hash uint32) *M {
	i := hash & t.mask
	if i >= t.chains {
		i = hash & (t.mask >> 1)
	}
	return &t.firsts[i/tablePiece][i%tablePiece]
}

func (t *table[M]) enter(m M) {
	if t.n++; t.n > int(t.chains) {
		t.grow()
	}
	first := t.chain(m.hash())
	*m.nextOf(), *first = *first, m
}

func (t *table[M]) leave(m M) {
	at := t.chain(m.hash())
	for *at != m {
		at = (*at).nextOf()
	}
	var none M
	*at, *m.nextOf() = *m.nextOf(), none
	t.n--
}

// grow splits the next chains: it adds as many, and moves to them what belongs there now.
//
// Members are where no cache has them. So the first of each chain is looked at before any
// is moved: none of these looks waits for another, and they take little longer than one.
func (t *table[M]) grow() {
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
			hashes[i] = m.hash()
		}
	}
	for i := range n {
		stay, move, hash := &from[i], &to[i], hashes[i]
		for m := *stay; m != none; {
			if hash&t.mask == added+i {
				*stay, *move = *m.nextOf(), m
				move = m.nextOf()
			} else {
				stay = m.nextOf()
			}
			if m = *stay; m != none {
				hash = m.hash()
			}
		}
		*move = none
	}
}

// part visits the members of one chain; it gives false when there is none with that
// number.
func (t *table[M]) part(i int, visit func(M)) bool {
	if i >= int(t.chains) {
		return false
	}
	var none M
	for m := t.firsts[i/tablePiece][i%tablePiece]; m != none; m = *m.nextOf() {
		visit(m)
	}
	return true
}

// all gives all members, in no order.
func (t *table[M]) all() []M {
	list := make([]M, 0, t.n)
	for i := 0; t.part(i, func(m M) { list = append(list, m) }); i++ {
	}
	return list
}

// salt makes the hashes of a namespace's keys its own, so that nobody can choose keys
// that all hang in one chain. It is made of random bits that a command has brought.
type salt [2]uint64

func saltOf(id [16]byte) salt {
	return salt{binary.LittleEndian.Uint64(id[:8]), binary.LittleEndian.Uint64(id[8:])}
}

// hash folds 16 bytes at a time by a product, whose halves depend on all of them.
func (s salt) hash(text string) uint32 {
	a, b := s[0]^0x9e3779b97f4a7c15^uint64(len(text)), s[1]^0xbf58476d1ce4e5b9
	for ; len(text) > 16; text = text[16:] {
		high, low := bits.Mul64(a^word(text), b^word(text[8:]))
		a, b = a^high, b^low
	}
	if len(text) > 8 {
		b ^= word(text[len(text)-8:])
		text = text[:8]
	}
	if len(text) == 8 {
		a ^= word(text)
	} else {
		for i := range len(text) {
			a ^= uint64(text[i]) << (8 * i)
		}
	}
	high, low := bits.Mul64(a, b)
	return mix(high ^ low)
}

// word reads the first 8 bytes of text.
func word(text string) uint64 {
	_ = text[7]
	return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
}

// hashOf is the hash of an id, whose bits are random.
func hashOf(id [16]byte) uint32 {
	return mix(binary.LittleEndian.Uint64(id[:8]) ^ binary.LittleEndian.Uint64(id[8:]))
}
