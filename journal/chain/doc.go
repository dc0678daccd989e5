// Package chain computes the hash chain over the entries of a journal, so that a published hash
// proves that no entry up to it was changed, added, removed or moved.
//
//	link(i) = SHA-256( link(i-1) | index i | epoch | data )
//	                   32 bytes    8         8       the rest       integers little-endian
//	head(i) = SHA-256( "interlock journal head 1\n" | link(i) )
//
// Every entry of the journal has a link: what a step wrote, each piece of a large one, and
// the record that opens an epoch. So a link depends on what the journal holds and not on
// how a backend stores it: segments, appends, snapshots and truncation do not show.
//
// Heads are published; links are not, because with one a guess at the next entry could be
// tried. Some older links, [Record.Marks], are kept with each snapshot, so that the chain can
// be computed again after a truncation. They need no protection against change: a change of one
// cannot make the next head come out right.
//
// Package chain must never read or write a journal by itself.
//
// Start reading at chain.go; record.go is how heads are kept beside a snapshot.
package chain
