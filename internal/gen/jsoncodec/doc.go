// Package jsoncodec emits the strict JSON decoders of the server: for each body of a request, a
// method of jsonIn that reads it into the engine's command.
//
//	internal/api.AcquireRequest  ─┐  names, units, limits
//	engine.Acquire                ┼─► jsoncodec ─► server/requests_gen.go
//	table.go                     ─┘  what is read in another way
//
// A field of a body goes to the field of the same Go name in the first parameter that has one, so
// the names in internal/api are those of the engine and of the root package. Package jsoncodec
// must never leave out a field in silence: one without a place is an error. What depends on several
// fields is checked by hand, in server/request*.go.
//
// Start reading at table.go, then decode.go.
package jsoncodec
