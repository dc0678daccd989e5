package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/interlockdev/interlock"
)

// A cursor is the place where a listing continues, behind a mark of the namespace and the
// listing with its filters: in another namespace, or with another filter, it is unknown. It
// grants nothing, so the mark is no secret.

const cursorMarkBytes = 8

func (c *call) cursorMark(listing string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s", c.namespace, listing))
	return sum[:cursorMarkBytes]
}

func (c *call) makeCursor(listing, after string) string {
	return base64.RawURLEncoding.EncodeToString(append(c.cursorMark(listing), after...))
}

// openCursor returns the place in the parameter cursor, to go on after it; "" when there is none.
// ok is false when the call was answered.
func (c *call) openCursor(listing string) (after string, ok bool) {
	cursor := c.query.Get("cursor")
	if cursor == "" {
		return "", true
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) <= cursorMarkBytes || string(b[:cursorMarkBytes]) != string(c.cursorMark(listing)) {
		return "", c.foreignCursor()
	}
	return string(b[cursorMarkBytes:]), true
}

// foreignCursor answers a call for its cursor, and returns false.
func (c *call) foreignCursor() bool {
	c.refuse(interlock.CodeNotFound, "this cursor belongs to another listing: start again without a cursor")
	return false
}

// openPlace reads a cursor that makePlace made: the numbers are left as they are when
// there is none. ok is false when the call was answered.
func (c *call) openPlace(listing string, numbers ...*uint64) (ok bool) {
	after, ok := c.openCursor(listing)
	if !ok || after == "" {
		return ok
	}
	if len(after) != 8*len(numbers) {
		return c.foreignCursor()
	}
	for i, n := range numbers {
		*n = binary.BigEndian.Uint64([]byte(after[8*i:]))
	}
	return true
}

// makePlace makes a cursor of the numbers where a listing continues.
func (c *call) makePlace(listing string, numbers ...uint64) string {
	var after []byte
	for _, n := range numbers {
		after = binary.BigEndian.AppendUint64(after, n)
	}
	return c.makeCursor(listing, string(after))
}

// prefixParam reads the prefix of the keys of a listing.
func (c *call) prefixParam() (prefix string, ok bool) {
	prefix = c.query.Get("prefix")
	if len(prefix) > interlock.MaxKeyBytes {
		c.refuse(
			interlock.CodeInvalidKey,
			fmt.Sprintf("parameter prefix has more than %d bytes, the maximum of a key", interlock.MaxKeyBytes),
		)
		return "", false
	}
	return prefix, true
}
