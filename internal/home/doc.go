// Package home knows where the files of one user are: the configuration file, and beside it the
// settings of the hooks and the copies of the files that `interlock hooks` changed.
//
// It must import nothing but the standard library, and little of that: the binary interlock-hook,
// which a coding agent starts for every edit, has it.
//
// Start reading at home.go.
package home
