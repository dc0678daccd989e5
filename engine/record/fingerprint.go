package record

import (
	"cmp"
	"encoding/binary"
	"math/bits"

	"github.com/interlockdev/interlock"
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

// Question adds a question to a fingerprint.
func (p *Fingerprint) Question(q *interlock.Question) {
	p.Text(q.Text)
	p.Number(uint64(q.Limit))
	p.Number(uint64(cmp.Or(q.OnLimit, interlock.Denied)))
	p.Reads(q.Reads)
}

// Claims adds a list of claims, with the zero Mode spelled out.
func (p *Fingerprint) Claims(list []interlock.Claim) {
	p.Number(uint64(len(list)))
	for _, c := range list {
		if c.Mode == 0 {
			c.Mode = interlock.Exclusive
		}
		p.Text(string(c.Key))
		p.Number(uint64(c.Mode))
		p.Number(uint64(c.Count))
	}
}

// Reads adds a list of reads.
func (p *Fingerprint) Reads(list []interlock.Read) {
	p.Number(uint64(len(list)))
	for _, r := range list {
		p.Text(string(r.Key))
		p.Number(uint64(r.Version))
		p.Flags(r.Absent, r.Present)
	}
}
