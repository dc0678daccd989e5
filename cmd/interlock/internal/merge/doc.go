// Package merge has the commands of the merge queue: a merger and its runners, the line, and the verification of
// landings.
//
// It must never give a check the credential, and never decide what lands: package merge/merger does.
//
// Start reading at merge.go, then serve.go and runner.go.
package merge
