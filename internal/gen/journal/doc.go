// Package journal emits what the bytes of journals depend on: the codec of events, the codecs of
// the values in them, and the fingerprints of commands.
//
//	engine/record/event.go         the struct Event ─► engine/record/event_gen.go
//	engine/record, and table.go    stored values    ─► engine/record/stored_gen.go
//	engine/command*.go, table.go   the commands     ─► engine/fingerprint_gen.go
//
// All three follow from tags at the fields. A struct of package interlock has no tags: table.go has
// them. Numbers are never changed and never reused. A stored value or a command with a field that
// has no tag is refused; the tag - leaves a field out.
//
// Events. The tag journal of a field begins with the number of its bit, which is also its place among
// the fields. After it, separated by commas, may stand:
//
//	name          the text is likely to come again, so that a Reader shares it
//	fixed         the number has 8 bytes, little endian
//	for=A|B       the field belongs to the events of these kinds
//
// Fields with one bit and other kinds are other meanings: they must have one type, the kinds of
// each must differ, and one of them may have no kinds, which gets all others. The tag of an
// embedded struct lists its fields with their bits: TTL=10,Grace=11. An event's field without the
// tag is not journaled.
//
// Stored values: a pattern, a queue, a task, and the others in the list of table.go. The tag journal
// begins with the number of the field, and the fields are written in the order of their numbers. A
// field that is zero is left out, and one that is absent reads as zero. The options are:
//
//	always        a text is written also if it is empty; an absent time is the base
//	required      the same, and a value in which the text is empty is malformed
//	since         a time is written as the duration since a base
//
// The fields of a struct within a struct, or of the elements of a list, are numbered from the number of
// the struct or the list on. The first field of an element is a text; it is always written, and
// begins the next element. An embedded struct without a number has the numbers of its fields.
//
// Fingerprints. The tag fingerprint of Head makes a struct a command with a fingerprint, and is its number.
// That of any other field is its place: 1, 2, 3 and so on, in each struct anew. A field with a place
// is always added, also if it is zero. A field that the first version of the command did not have is
// numbered +1, +2, +3 and so on, over all structs of the command: it is added after all others, with
// its number, and only if it is set, so that a body without it keeps its fingerprint. The options are:
//
//	omitzero      a zero value is left out, and the field has no number even so: an older form of +1
//	default=X     a zero value counts as the constant X of package interlock
//	bit=0         fields with one place are bits of one number; a pointer's bit is its presence, and
//	              its value follows the number
//	bare          a list is added without the number of its elements
//	Count=+1      the field Count of the list's elements is an addition
//	blank         an empty text precedes the field
//	stored=F      the field is the text that the function F of package record appends
//
// Package journal must never change a number, and must refuse tags that use a number twice or leave a
// gap where none may be.
//
// Start reading at event.go, then tag.go and table.go.
package journal
