// Package typescript emits clients/typescript/src/types.ts: clients/schema.json for the compiler of
// TypeScript.
//
//	types        a type for each value and for each list of words, an interface for each object
//	codes        the table codes: the status and the next step of each code
//	operations   the interface Operations, with the parameters, the body and the answer of each
//	             operation, and the table operations, with its method and path
//	limits       the object limits
//
// A decimal is a string: a number of JavaScript has no exact form above 2^53. A value of any JSON is
// unknown.
//
// Package typescript must never know more of the API than the schema has: another client could not
// know it.
//
// Start reading at typescript.go.
package typescript
