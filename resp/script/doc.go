// Package script recognises the Lua scripts that libraries for locks send to Redis. It runs no Lua: a
// script is compared, token by token, with the scripts that it knows, and is one of them or unknown.
//
//	token.go  the canonical form of a text: blanks, comments, quotes and the names of locals do not count
//	form.go   the forms that are known, and their meanings
//
// It must never recognise a script that differs from a known one in a token that counts. The texts in
// testdata/shipped are those of the libraries, byte for byte.
//
// Start reading at form.go.
package script
