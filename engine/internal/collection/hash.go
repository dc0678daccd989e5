package collection

import (
	"encoding/binary"
	"math/bits"
)

// Salt keys the hashes of texts, so that no caller can choose texts that all fall into one
// chain of a Table.
type Salt [2]uint64

// NewSalt returns the salt with the bits of id, which should be random.
func NewSalt(id [16]byte) Salt {
	return Salt{binary.LittleEndian.Uint64(id[:8]), binary.LittleEndian.Uint64(id[8:])}
}

// Hash returns the hash of text under s. It folds 16 bytes at a time by a product, so that both
// halves depend on all of them.
func (s Salt) Hash(text string) uint32 {
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
	return Mix(high ^ low)
}

// word returns the first 8 bytes of text.
func word(text string) uint64 {
	_ = text[7]
	return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
}

// HashID returns the hash of an id of random bits.
func HashID(id [16]byte) uint32 {
	return Mix(binary.LittleEndian.Uint64(id[:8]) ^ binary.LittleEndian.Uint64(id[8:]))
}

// Mix returns a number in which each bit depends on all bits of x (the finaliser of
// splitmix64). Decisions of the engine depend on its values.
func Mix(x uint64) uint32 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return uint32((x ^ x>>31) >> 32)
}
