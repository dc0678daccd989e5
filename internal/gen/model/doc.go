// Package model reads the bodies and answers of the HTTP API from the structs of internal/api:
// their fields with names, kinds, units, limits and comments.
//
//	internal/api/*.go ─► model ─┬─► jsoncodec ─► server/*_gen.go
//	                            └─► openapi   ─► components.schemas of server/openapi.json
//
// A struct of internal/api is a JSON object, and an alias is a kind of value that has a schema of
// its own. The tag json has the member's name, and omitempty for a member that may be left out.
// The tags min and max bound a number, the length of a string or of a list; a limit is a number
// or a constant of the root package, and a duration counts in milliseconds. The tag enum lists
// the words that a string can be, and text marks what agents and people wrote: one line or lines.
// The tag default has the value that counts when a field is left out, if that is always the same,
// and unit the unit of a number.
// The comment above a field is its description for a reader of the API, and is not about Go.
//
// A directive //schema:NAME VALUE above a type adds to it. Of a struct: name is its other name in
// the API, required lists fields that are never left out, one lists fields that exclude each other.
// Of an alias: enum lists words, constants names the type of the root package that has them, and
// min, max, pattern, format, type and unit are members of the schema.
//
// Package model must not know what is generated from it: emitters for other languages read the
// same tables.
//
// Start reading at model.go.
package model
