// Package sequence keeps numbered files in order: migrations, decision records and the like, where two submissions
// that were made at the same time take the same next number. git merges both without a conflict, because the names
// differ; the result is wrong.
//
// It is pure: it reads lists of paths, and no files. Paths are slash-separated and relative to the root of the
// repository, as git prints them.
//
// A Rule is a directory and the pattern of the names in it. Detect finds rules in a tree. Check compares what a
// submission adds with the tree that it is merged onto: a number that is taken, or that is not above the highest,
// is a Problem that names the next free one. Renumber lists the renames that solve the problems.
//
// Files that differ only behind the first dot of their names, such as 0042_users.up.sql and 0042_users.down.sql, are
// one step and share its number.
package sequence
