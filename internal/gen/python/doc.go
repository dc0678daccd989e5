// Package python emits the part of the client for Python that follows from the HTTP API.
//
//	package schema ─┬─► clients/python/src/interlock/_types.py  objects, words and values
//	                └─► clients/python/src/interlock/_api.py    operations, codes and limits
//
// An object is a TypedDict, because answers of newer servers have members that an older client does
// not know. Python 3.10 has no NotRequired, so that the required members are in a class of their own.
//
// Package python must never know a type or an operation by its name: all of it is in the schema.
//
// Start reading at python.go.
package python
