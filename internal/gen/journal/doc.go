// Package journal emits the codec of record.Event: the bits of the mask, the writer and the
// reader of the fields.
//
//	engine/record/event.go  the struct and its tags ─► engine/record/event_gen.go
//
// The tag journal of a field begins with the number of its bit, which is also its place among the
// fields: numbers are never changed and never reused. After it, separated by commas, may stand:
//
//	name          the text is likely to come again, so that a Reader shares it
//	fixed         the number has 8 bytes, little endian
//	for=A|B       the field belongs to the events of these kinds
//
// Fields with one bit and other kinds are other meanings: they must have one type, the kinds of
// each must differ, and one of them may have no kinds, which gets all others. The tag of an
// embedded struct lists its fields with their bits: TTL=10,Grace=11. A field without the tag is
// not journaled.
//
// Package journal must never change a number, and must refuse a struct that leaves a gap among
// them or uses one twice.
//
// Start reading at event.go.
package journal
