// Package jsoncodec emits the JSON of the server: for each body of a request, a method of jsonIn that
// reads it strictly into the engine's command, and for the parts of answers, functions that write
// them to a jsonOut.
//
//	internal/api.AcquireRequest  ─┐  names, units, limits
//	engine.Acquire                ┼─► decode.go ─► server/requests_gen.go
//	table.go                     ─┘  what is read in another way
//
//	internal/api.Lease           ─┐
//	interlock.Lease               ┼─► encode.go ─► server/answers_gen.go
//	answers.go                   ─┘  what is written in another way
//
// A field of a body goes to the field of the same Go name in the first parameter that has one, so
// the names in internal/api are those of the engine and of the root package. Package jsoncodec
// must never leave out a field in silence: one without a place is an error. A text that agents or
// people wrote has the tag text in internal/api, and is cleaned when it is written. What depends on several
// fields is checked by hand, in server/request*.go. A field of an answer that only some callers get
// has a condition in answers.go; the handler decides it.
//
// Start reading at table.go, then decode.go; at answers.go, then encode.go.
package jsoncodec
