package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Hash is a SHA-256.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Link is the chain's value after the entry at an index.
type Link struct {
	Index interlock.Index
	Hash  Hash
}

// Head returns the part of a link that may be published.
func (l Link) Head() Head {
	return Head{Index: l.Index, Hash: sha256.Sum256(append([]byte("interlock journal head 1\n"), l.Hash[:]...))}
}

// Head proves the entries up to an index. It is a hash of the link there, so that a reader of
// heads cannot try what an entry between two of them may have been: that takes a link.
type Head struct {
	Index interlock.Index
	Hash  Hash
}

// String returns the head as it is published: the index, a colon and 64 digits.
func (h Head) String() string { return strconv.FormatUint(uint64(h.Index), 10) + ":" + h.Hash.String() }

// errHead describes the form of a head.
var errHead = errors.New("a head is an index, a colon and 64 hexadecimal digits, as `interlock admin journal head` prints it")

// Parse parses the text of String.
func Parse(text string) (h Head, err error) {
	index, digits, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(index, 10, 64)
	if err != nil || len(digits) != hex.EncodedLen(len(h.Hash)) {
		return Head{}, errHead
	}
	if _, err := hex.Decode(h.Hash[:], []byte(digits)); err != nil {
		return Head{}, errHead
	}
	h.Index = interlock.Index(n)
	return h, nil
}

// Start returns where a chain begins that has the entry behind index after as its first: 0, or
// the index of a snapshot that was made before there was a chain.
func Start(after interlock.Index) Link {
	text := binary.LittleEndian.AppendUint64([]byte("interlock journal chain 1\n"), uint64(after))
	return Link{Index: after, Hash: sha256.Sum256(text)}
}

// Chain computes links, one entry after the other.
type Chain struct {
	last   Link
	digest hash.Hash
	begin  [sha256.Size + 16]byte
}

// From returns a chain that continues from a link.
func From(l Link) *Chain { return &Chain{last: l, digest: sha256.New()} }

// Last returns the link of the last entry that was added.
func (c *Chain) Last() Link { return c.last }

// Add adds the entry behind the last one. It panics for any other one.
func (c *Chain) Add(e journal.Entry) {
	if e.Index != c.last.Index+1 {
		panic(fmt.Sprintf("chain: invariant broken: entry %d was added behind %d", e.Index, c.last.Index))
	}
	copy(c.begin[:], c.last.Hash[:])
	binary.LittleEndian.PutUint64(c.begin[sha256.Size:], uint64(e.Index))
	binary.LittleEndian.PutUint64(c.begin[sha256.Size+8:], uint64(e.Epoch))
	c.digest.Reset()
	c.digest.Write(c.begin[:])
	c.digest.Write(e.Data)
	c.digest.Sum(c.last.Hash[:0])
	c.last.Index = e.Index
}
