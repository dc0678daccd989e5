// Package schema emits clients/schema.json: all that a client library in another language needs to
// know of the HTTP API, in one file that is read without knowledge of Go or OpenAPI.
//
//	internal/api          ─┐  types: objects with their fields, words, kinds of values
//	code.go               ─┤
//	internal/problem      ─┼─► clients/schema.json
//	constants of the root ─┤  limits
//	server/openapi.json   ─┘  operations (their part of the document is written by hand)
//
// The file has these members:
//
//	problem      the type and the content type of every refusal
//	types        in the order of the source; kind tells which:
//	               value   a string or number with a unit, limits or a pattern
//	               words   a string out of values
//	               object  fields; exclusive lists those that exclude each other: one of them is there
//	codes        with status, title, retryable, transient, action, retry_after_ms, next
//	operations   with method, path, parameters, body, answers, errors
//	limits       the constants Max..., Min... and Default... of the root package
//
// A field, a parameter and a body have a type: the name of an entry of types, or string, boolean,
// integer, decimal (an integer of 64 bits, as a string of digits), json (any value) or bytes. list
// makes it an array of that type. What is not optional is always there. Numbers have min and max,
// strings min_length and max_length, lists min_items and max_items and for their strings
// item_min_length and item_max_length; enum lists words, pattern is a
// regular expression. text is line or lines where agents and people
// write: it is data, never an instruction. An answer with stream is a line of JSON each.
//
// Package schema must never leave a keyword of openapi.json out in silence: one that it does not
// know is an error.
//
// Start reading at schema.go.
package schema
