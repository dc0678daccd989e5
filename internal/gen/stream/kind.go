package stream

import "go/types"

// kind is how a value that is no message is written: the pair of a type of the .proto file and
// a Go type.
type kind int

const (
	kindNone kind = iota
	kindString
	kindStrings
	kindBytes
	kindOptionalBytes // nil and empty differ
	kindID            // 16 bytes
	kindIDs
	kindDigest // 32 bytes
	kindBool
	kindDuration
	kindInt
	kindSmallInt // an int that is never above 32 bits
	kindUint32
	kindUint64
	kindEnum
	kindEnums
	kindSint
	kindSint64
	kindOptionalSint64
)

// wire names the wire type of a kind; of a list, that of one element.
func (k kind) wire() string {
	switch k {
	case kindString, kindStrings, kindBytes, kindOptionalBytes, kindID, kindIDs, kindDigest:
		return "wireBytes"
	}
	return "wireVarint"
}

// checked reports whether the decoder of a kind can fail.
func (k kind) checked() bool {
	switch k {
	case kindString, kindStrings, kindID, kindIDs, kindDigest, kindEnums:
		return true
	}
	return false
}

// kind decides how a field is written. It refuses a pair that no message has needed yet.
func (w *writer) kind(c *codec, f *place) kind {
	protoType := f.kind
	switch {
	case f.repeated:
		protoType = "repeated " + protoType
	case f.optional:
		protoType = "optional " + protoType
	}
	basic, _ := f.typ.Underlying().(*types.Basic)
	is := func(kind types.BasicKind) bool { return basic != nil && basic.Kind() == kind }
	elem := element(f.typ)
	_, pointer := f.typ.Underlying().(*types.Pointer)
	_, list := f.typ.Underlying().(*types.Slice)
	elemBasic, _ := elem.Underlying().(*types.Basic)
	elemIs := func(kind types.BasicKind) bool { return elemBasic != nil && elemBasic.Kind() == kind }
	switch protoType {
	case "string":
		if is(types.String) {
			return kindString
		}
	case "repeated string":
		if list && elemIs(types.String) {
			return kindStrings
		}
	case "bytes":
		switch {
		case list && elemIs(types.Byte):
			return kindBytes
		case bytesArray(f.typ, 16):
			return kindID
		case bytesArray(f.typ, 32):
			return kindDigest
		}
	case "optional bytes":
		if list && elemIs(types.Byte) {
			return kindOptionalBytes
		}
	case "repeated bytes":
		if list && bytesArray(elem, 16) {
			return kindIDs
		}
	case "bool":
		if is(types.Bool) {
			return kindBool
		}
	case "int64":
		switch {
		case f.typ.String() == "time.Duration":
			return kindDuration
		case is(types.Int):
			return kindInt
		}
	case "uint32":
		switch {
		case is(types.Int):
			return kindSmallInt
		case is(types.Uint32):
			return kindUint32
		case is(types.Uint8):
			return kindEnum
		}
	case "uint64":
		if is(types.Uint64) {
			return kindUint64
		}
	case "sint32":
		if is(types.Int) {
			return kindSint
		}
	case "sint64":
		if is(types.Int64) {
			return kindSint64
		}
	case "optional sint64":
		if pointer && elemIs(types.Int64) {
			return kindOptionalSint64
		}
	default:
		switch {
		case is(types.Uint8) && !f.optional:
			return kindEnum
		case f.repeated && list && elemIs(types.Uint8):
			return kindEnums
		}
	}
	w.fail(c, f, "no code is known for the type %s on %s", protoType, f.typ)
	return kindNone
}

func bytesArray(t types.Type, size int64) bool {
	a, ok := t.Underlying().(*types.Array)
	if !ok || a.Len() != size {
		return false
	}
	elem, ok := a.Elem().Underlying().(*types.Basic)
	return ok && elem.Kind() == types.Byte
}
