// Package file guards a directory that several coding agents change at once without branches:
// no write is ever lost, and no agent overwrites a change that it has not seen.
//
// A reader gets a file's content with its version, the hash of the content. A writer names the
// version that its change was made from. If the file still has it, the change is written; if
// not, git's three-way merge joins the change with the changes of others; and if that finds a
// conflict, nothing is written and the answer is a [StaleError] with the packet: the changes,
// their authors, and the next step.
//
//	read  ── content, version A ──► agent thinks ──► write, base A
//	                                                   │ file at A        written
//	                                                   │ file at B, clean  merged
//	                                                   └ file at B         stale: A → B, author, why
//
// It must never write a file outside its root, through a symbolic link or into .git. It must never
// leave half a file when it is killed, or overwrite a version other than the one that it verified.
//
// It has no server and no daemon. Processes meet at a lock in the directory
// .interlock below the root, where the contents that were read are kept for merging,
// too. The lock does not stop programs that write to the files by other means; their
// writes are seen as changes from outside, except in the instant between the verification
// and the rename.
//
// Start reading at dir.go.
package file
