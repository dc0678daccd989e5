package interlock

import (
	"crypto/sha256"
	"encoding/binary"
)

// PartOf returns the number of the part that a resource belongs to, of a key that is shared out
// into so many parts: the first eight bytes of the SHA-256 of its name, as a number with the
// highest byte first, modulo the number of parts. So every caller computes the same part, in
// any language. It panics if parts is not positive.
func PartOf(resource string, parts int) int {
	sum := sha256.Sum256([]byte(resource))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(parts))
}
