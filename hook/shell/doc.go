// Package shell reads shell commands: it returns the files that a command changes, as far as its text shows them.
//
//	Read ─► mvdan.cc/sh/v3/syntax ─► read.go: the shell's own constructs ─► table.go: the programs
//
//	reading.go   what a reading is, and its bounds
//	parse.go     the text of a command to statements, within bounds
//	read.go      statements: lists, loops, functions, redirections
//	folder.go    the folders that commands run in
//	word.go      words: quotes, variables, patterns, substitutions
//	program.go   how a row of the table is applied; option.go parts options from operands
//	table.go     the table of programs, with table_format.go, table_project.go, table_report.go
//	             and table_git.go
//	special.go   the programs that no row describes, with fetch.go
//	filter.go    the programs of sed and awk
//	language.go  the files that a program in another language names
//	mark.go      names of files within texts that are read as commands
//	builtin.go   the shell's own commands, and shells within shells
//	narrow.go    the same command with commits of some files alone
//	path.go      paths of this system, and of others
//
// A reading errs on one side: what a command changes is named, or is below a folder that is named, or the reading
// reports that something is not understood. The text is all that there is to it: the package must never look at a
// disk, never run anything, and never panic. Each reading ends within a bounded number of steps; what is left then is
// not understood.
//
// Start reading at reading.go.
package shell
