package simdisk

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
)

// Loss is the part of the changes since the last sync that a power cut destroys.
type Loss int

const (
	LoseAll   Loss = iota
	LoseNone       // the disk was faster than the power cut
	Prefix         // in order, up to some byte of some write
	Torn           // any part of any write, by pieces of up to 512 bytes
	Reordered      // any sectors of any writes, sizes and names, in any order
	Losses
)

func (l Loss) String() string {
	return []string{"lose", "keep", "prefix", "torn", "reordered"}[l]
}

// PowerCut returns the disk as it is found afterwards. The disk itself stays.
func (d *Disk) PowerCut(l Loss, rng *rand.Rand) *Disk {
	out := New()
	out.last, out.Limit = d.last, d.Limit
	names := maps.Clone(d.durable)
	for _, c := range d.keptNames(l, rng) {
		if c.gone != "" {
			delete(names, c.gone)
		}
		if c.added != "" {
			names[c.added] = c.node
		}
	}
	kept := map[*Inode]*Inode{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := names[name]
		if kept[n] == nil {
			data := n.survivor(l, rng)
			kept[n] = &Inode{Number: n.Number, Data: data, Synced: bytes.Clone(data)}
		}
		out.Files[name] = kept[n]
	}
	out.durable = maps.Clone(out.Files)
	return out
}

// keptNames are the changes of names that a power cut leaves, in the order in which
// they got to the disk.
func (d *Disk) keptNames(l Loss, rng *rand.Rand) (kept []nameChange) {
	cut := rng.IntN(len(d.renames) + 1)
	switch l {
	case LoseNone:
		return d.renames
	case Prefix:
		return d.renames[:cut]
	case Torn:
		for _, c := range d.renames {
			if rng.IntN(2) != 0 {
				kept = append(kept, c)
			}
		}
	case Reordered:
		// A rename is a new name and the end of an old one, each by itself.
		for _, c := range d.renames {
			if c.added != "" {
				kept = append(kept, nameChange{added: c.added, node: c.node})
			}
			if c.gone != "" {
				kept = append(kept, nameChange{gone: c.gone})
			}
		}
		kept = some(kept, rng)
	}
	return kept
}

// some takes any of all, in any order. How many is as likely as any other number, so
// that nearly all and nearly none come up as often as half.
func some[T any](all []T, rng *rand.Rand) []T {
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:rng.IntN(len(all)+1)]
}

func (n *Inode) survivor(l Loss, rng *rand.Rand) []byte {
	b := bytes.Clone(n.Synced)
	switch l {
	case LoseNone:
		for _, w := range n.dirty {
			b = w.apply(b)
		}
	case Prefix:
		b = n.prefix(b, rng)
	case Torn:
		piece := int64(1) << (3 * rng.IntN(4)) // 1, 8, 64, 512
		for _, w := range n.dirty {
			for _, part := range w.split(piece) {
				if rng.IntN(2) == 0 {
					b = part.apply(b)
				}
			}
		}
	case Reordered:
		b = n.reordered(b, rng)
	}
	return b
}

// prefix keeps what was written first.
func (n *Inode) prefix(b []byte, rng *rand.Rand) []byte {
	total := 0
	for _, w := range n.dirty {
		total += len(w.data)
	}
	left := rng.IntN(total + 1)
	for _, w := range n.dirty {
		if w.off >= 0 {
			w.data = w.data[:min(left, len(w.data))]
			left -= len(w.data)
		}
		b = w.apply(b)
	}
	return b
}

// reordered keeps any sectors, and any of the sizes that the file has had: what was
// written behind that is not seen, and what was not written before it is zeros.
func (n *Inode) reordered(b []byte, rng *rand.Rand) []byte {
	sector := int64(512)
	if rng.IntN(2) == 0 {
		sector = 4096
	}
	sizes := []int64{int64(len(b))}
	var sectors []write
	for _, w := range n.dirty {
		size := w.size
		if w.off >= 0 {
			size = max(sizes[len(sizes)-1], w.off+int64(len(w.data)))
			sectors = append(sectors, w.split(sector)...)
		}
		sizes = append(sizes, size)
	}
	for _, w := range some(sectors, rng) {
		b = w.apply(b)
	}
	return write{off: -1, size: sizes[rng.IntN(len(sizes))]}.apply(b)
}

// split cuts a write where pieces of this size end in the file. A new size is whole.
func (w write) split(piece int64) (parts []write) {
	if w.off < 0 {
		return []write{w}
	}
	for off, data := w.off, w.data; len(data) > 0; {
		n := min(int64(len(data)), piece-off%piece)
		parts = append(parts, write{off: off, data: data[:n]})
		off, data = off+n, data[n:]
	}
	return parts
}
