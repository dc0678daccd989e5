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

// Hash is a value of the chain.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Head is the chain's value after the entry at an index.
type Head struct {
	Index interlock.Index
	Hash  Hash
}

// String returns the head as it is published: the index, a colon and 64 digits.
func (h Head) String() string { return strconv.FormatUint(uint64(h.Index), 10) + ":" + h.Hash.String() }

// errHead says what a head looks like.
var errHead = errors.New("a head is an index, a colon and 64 hexadecimal digits, as `interlock journal head` prints it")

// Parse reads what String has written.
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

// Start returns the head of a chain whose first link is the entry behind index after: 0,
// or the index of a snapshot that was made before there was a chain.
func Start(after interlock.Index) Head {
	text := binary.LittleEndian.AppendUint64([]byte("interlock journal chain 1\n"), uint64(after))
	return Head{Index: after, Hash: sha256.Sum256(text)}
}

// Chain computes heads, one entry after the other.
type Chain struct {
	head   Head
	digest hash.Hash
	link   [sha256.Size + 16]byte
}

// From returns a chain that goes on from a head.
func From(h Head) *Chain { return &Chain{head: h, digest: sha256.New()} }

// Head returns the head after the last entry that was added.
func (c *Chain) Head() Head { return c.head }

// Add adds the entry behind the head. It panics for any other one.
func (c *Chain) Add(e journal.Entry) {
	if e.Index != c.head.Index+1 {
		panic(fmt.Sprintf("chain: invariant broken: entry %d was added behind %d", e.Index, c.head.Index))
	}
	copy(c.link[:], c.head.Hash[:])
	binary.LittleEndian.PutUint64(c.link[sha256.Size:], uint64(e.Index))
	binary.LittleEndian.PutUint64(c.link[sha256.Size+8:], uint64(e.Epoch))
	c.digest.Reset()
	c.digest.Write(c.link[:])
	c.digest.Write(e.Data)
	c.digest.Sum(c.head.Hash[:0])
	c.head.Index = e.Index
}
