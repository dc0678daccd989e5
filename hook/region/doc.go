// Package region names the part of a source file that an edit changes, so that two agents can edit two parts of a file.
//
// A file is cut into regions at its top-level declarations: in Go by Go's own parser, in other languages before each
// line that begins in the first column with a word, as git finds the heading of a hunk. A region has the name of its
// declaration:
//
//	import { db } from "./db"        import { db } from "./db"
//	export function login() {        export function login()
//	  ...
//	}
//	export function logout() {       export function logout()
//	  ...
//	}
//
// An edit has a region only if nothing else depends on it: the text that it replaces is in the file once, lies in one
// region, and leaves the names and the order of all regions as they are. Then edits of two regions change different
// lines, and each edit leaves the other's region with its name. Any other edit is one of the whole file.
//
// The names are of text, not of meaning: a function may call one in another region. What a commit must have together is
// for its tests.
//
// It is a part of a small binary that starts for each event of a harness, so it imports little: a tree-sitter grammar
// for each language would be many times as large as the rest. It must never read a file itself.
//
// Start reading at region.go.
package region
