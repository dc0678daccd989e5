package record

import (
	"encoding/binary"
	"math/bits"
)

// Fingerprint is a running hash.
type Fingerprint uint64

// Number adds a number.
func (p *Fingerprint) Number(v uint64) {
	hi, lo := bits.Mul64(uint64(*p)^v^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	*p = Fingerprint(hi ^ lo)
}

// Text adds a text.
func (p *Fingerprint) Text(s string) {
	p.Number(uint64(len(s)))
	for len(s) >= 8 {
		p.Number(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
		s = s[8:]
	}
	var rest uint64
	for i := range len(s) {
		rest |= uint64(s[i]) << (8 * i)
	}
	p.Number(rest)
}

// Bytes adds bytes as Text adds a text, without a copy.
func (p *Fingerprint) Bytes(b []byte) {
	p.Number(uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		p.Number(binary.LittleEndian.Uint64(b))
	}
	var rest [8]byte
	copy(rest[:], b)
	p.Number(binary.LittleEndian.Uint64(rest[:]))
}

// Flags adds up to 64 flags as one number.
func (p *Fingerprint) Flags(list ...bool) {
	var bits uint64
	for i, set := range list {
		if set {
			bits |= 1 << i
		}
	}
	p.Number(bits)
}

// ID adds an id.
func (p *Fingerprint) ID(id [16]byte) {
	p.Number(binary.LittleEndian.Uint64(id[:8]))
	p.Number(binary.LittleEndian.Uint64(id[8:]))
}

// Addition adds a field that the first version of a command did not have, under a number of its
// own, unless it is zero: a body without it keeps its fingerprint.
func (p *Fingerprint) Addition(field, v uint64) {
	if v != 0 {
		p.Number(field)
		p.Number(v)
	}
}
