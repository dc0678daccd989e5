package proto

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// The wire types of protocol buffers that session.proto uses. Fields of other
// types are unknown ones, and are skipped.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// ErrFrame reports that the bytes are no frame. The error that wraps it contains the reason.
var ErrFrame = errors.New("not a frame of the session stream")

func badFrame(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFrame, fmt.Sprintf(format, args...))
}

func appendVarint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendTag begins a field. Numbers below 16 take one byte.
func appendTag(b []byte, num, wire byte) []byte {
	if num < 16 {
		return append(b, num<<3|wire)
	}
	return append(b, num<<3|wire|0x80, num>>4)
}

func appendUint(b []byte, num byte, v uint64) []byte {
	if v == 0 {
		return b
	}
	return appendVarint(appendTag(b, num, wireVarint), v)
}

func appendDuration(b []byte, num byte, d time.Duration) []byte {
	return appendUint(b, num, uint64(d))
}

func appendSint(b []byte, num byte, v int32) []byte {
	return appendUint(b, num, uint64(uint32(v)<<1^uint32(v>>31)))
}

func appendSint64(b []byte, num byte, v int64) []byte {
	return appendVarint(appendTag(b, num, wireVarint), uint64(v)<<1^uint64(v>>63))
}

func appendBool(b []byte, num byte, v bool) []byte {
	if !v {
		return b
	}
	return append(appendTag(b, num, wireVarint), 1)
}

func appendString[S ~string](b []byte, num byte, s S) []byte {
	if s == "" {
		return b
	}
	return appendText(b, num, s)
}

func appendBytes(b []byte, num byte, s []byte) []byte {
	if len(s) == 0 {
		return b
	}
	return appendText(b, num, s)
}

// appendText writes a string also when it is empty, as the element of a list.
func appendText[S ~string | ~[]byte](b []byte, num byte, s S) []byte {
	b = appendVarint(appendTag(b, num, wireBytes), uint64(len(s)))
	return append(b, s...)
}

func appendTexts[S ~string](b []byte, num byte, list []S) []byte {
	for _, s := range list {
		b = appendText(b, num, s)
	}
	return b
}

func appendID(b []byte, num byte, id *[16]byte) []byte {
	if *id == ([16]byte{}) {
		return b
	}
	b = append(appendTag(b, num, wireBytes), 16)
	return append(b, id[:]...)
}

func appendDigest(b []byte, num byte, d *[32]byte) []byte {
	if *d == ([32]byte{}) {
		return b
	}
	return appendText(b, num, d[:])
}

func appendInt(b []byte, num byte, v int) []byte { return appendUint(b, num, uint64(v)) }

// appendEnums writes a list of numbers in one piece.
func appendEnums[T ~uint8](b []byte, num byte, list []T) []byte {
	if len(list) == 0 {
		return b
	}
	b = openMessage(b, num)
	start := len(b)
	for _, v := range list {
		b = appendVarint(b, uint64(v))
	}
	return closeMessage(b, start)
}

// openMessage begins an embedded message; closeMessage, with the length that b
// had after openMessage, ends it. One byte is kept for the length, which is
// enough for most; a longer message is moved.
func openMessage(b []byte, num byte) []byte { return append(appendTag(b, num, wireBytes), 0) }

func closeMessage(b []byte, start int) []byte {
	size := len(b) - start
	if size < 0x80 {
		b[start-1] = byte(size)
		return b
	}
	extra := (bits.Len(uint(size))+6)/7 - 1
	for range extra {
		b = append(b, 0)
	}
	copy(b[start+extra:], b[start:start+size])
	appendVarint(b[:start-1], uint64(size))
	return b
}

// byteSeq is an encoded message. A frame is decoded from its bytes, what is in it
// from a string, so that its text can share the string's memory.
type byteSeq interface{ string | []byte }

// field is one field as it stands in a message: v for a varint, s for bytes.
type field[B byteSeq] struct {
	tag uint64 // number and wire type
	v   uint64
	s   B
}

// nextField takes the first field off a message.
func nextField[B byteSeq](s B) (f field[B], rest B, err error) {
	if f.tag, s, err = varint(s); err != nil {
		return f, rest, err
	}
	switch f.tag & 7 {
	case wireVarint:
		f.v, s, err = varint(s)
		return f, s, err
	case wireBytes:
		var n uint64
		if n, s, err = varint(s); err != nil {
			return f, rest, err
		}
		if n > uint64(len(s)) {
			return f, rest, badFrame("a length of %d exceeds the frame", n)
		}
		f.s = s[:n]
		return f, s[n:], nil
	case wireFixed64:
		if len(s) < 8 {
			return f, rest, badFrame("it is truncated")
		}
		return f, s[8:], nil
	case wireFixed32:
		if len(s) < 4 {
			return f, rest, badFrame("it is truncated")
		}
		return f, s[4:], nil
	}
	return f, rest, badFrame("unknown wire type: %d", f.tag&7)
}

func varint[B byteSeq](s B) (v uint64, rest B, err error) {
	if len(s) > 0 && s[0] < 0x80 {
		return uint64(s[0]), s[1:], nil
	}
	for i := 0; i < len(s) && i < 10; i++ {
		c := s[i]
		if i == 9 && c > 1 {
			break
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, s[i+1:], nil
		}
	}
	if len(s) < 10 {
		return 0, rest, badFrame("it is truncated")
	}
	return 0, rest, badFrame("a number is longer than 64 bits")
}

// text checks what the .proto calls a string.
func text[S ~string](into *S, s string) error {
	if !utf8.ValidString(s) {
		return badFrame("text is not valid UTF-8")
	}
	*into = S(s)
	return nil
}

// ownBytes is a copy of s, nil for none: an empty field means the same as a missing one.
func ownBytes[B byteSeq](s B) []byte {
	if len(s) == 0 {
		return nil
	}
	return append([]byte(nil), s...)
}

// MaxListed bounds the lists in a client's operation, because an empty element is
// much smaller on the wire than in memory. No request may have longer ones. A decoder keeps
// one element more, which is enough to be refused, and leaves out the rest.
const MaxListed = max(
	interlock.MaxClaims, interlock.MaxAlternatives, interlock.MaxMembers, interlock.MaxReads, interlock.MaxWrites,
	interlock.MaxFollowUps, interlock.MaxShares, interlock.MaxKnown,
)

// id checks what the .proto calls an id.
func id[T ~[16]byte, B byteSeq](into *T, s B) error {
	if len(s) != 16 {
		return badFrame("an id has %d bytes instead of 16", len(s))
	}
	copy((*into)[:], s)
	return nil
}

// digest checks what the .proto calls a digest.
func digest[B byteSeq](into *[32]byte, s B) error {
	if len(s) != len(into) {
		return badFrame("a digest has %d bytes instead of %d", len(s), len(into))
	}
	copy(into[:], s)
	return nil
}

func unzigzag64(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func unzigzag(v uint64) int32 { return int32(uint32(v)>>1) ^ -int32(v&1) }

// count reads a number of things; what is above 32 bits is refused as too many.
func count(v uint64) uint32 { return uint32(min(v, math.MaxUint32)) }

// enum reads a number that stands for a name. One that is too large for any stays
// one that stands for none.
func enum[T ~uint8](v uint64) T { return T(min(v, math.MaxUint8)) }

// packedEnums reads a list of numbers that is in one piece.
func packedEnums[T ~uint8, B byteSeq](into *[]T, s B) error {
	for len(s) > 0 && len(*into) <= MaxListed {
		v, rest, err := varint(s)
		if err != nil {
			return err
		}
		s = rest
		*into = append(*into, enum[T](v))
	}
	return nil
}

// grow appends a zero T and returns it to be filled in.
func grow[T any](list *[]T) *T {
	var zero T
	*list = append(*list, zero)
	return &(*list)[len(*list)-1]
}

// allocated returns what p points to, which it allocates if there is nothing yet.
func allocated[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// eachField calls visit for the fields of a message, in their order. They are values, because
// taking the address of one for a function that is a value costs an allocation.
func eachField(s string, visit func(field[string]) error) error {
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// countFields counts the fields with a tag, as far as the message can be read.
func countFields(s string, tag uint64) (n int) {
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			break
		}
		if f.tag == tag {
			n++
		}
		s = rest
	}
	return n
}

// skip checks a message that has only unknown fields.
func skip[B byteSeq](s B) (err error) {
	for len(s) > 0 {
		if _, s, err = nextField(s); err != nil {
			return err
		}
	}
	return nil
}
