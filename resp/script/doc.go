// Package script finds out what a Lua script about locks does, without running it. A script is read by a small parser
// and followed through each case that its key can be in: free, with the value, with another one. What it writes and
// returns in each is its normal form. So blanks, quotes, names, order and style do not count, and a script that may do
// anything beyond that form, in any case, is refused with the line and the reason.
//
//	token.go    the tokens of a text
//	parse.go    the syntax: locals, if, for over KEYS, return, calls of redis
//	follow.go   follows a script through one case of its key
//	call.go     what each command of Redis does and answers in a case
//	program.go  the normal form, and which ones are allowed
//	all.go      scripts about all of their keys
//
// It must never accept a script that does something else in any case than its normal form, and no form may
// write to a key that does not have the value.
//
// Start reading at program.go.
package script
