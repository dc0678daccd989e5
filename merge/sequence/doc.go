// Package sequence keeps numbered files in order: migrations, decision records and the like, where two submissions
// that were made at the same time take the same next number. git merges both without a conflict, because the names
// differ; the result is wrong.
//
// It is pure: it reads lists of paths and contents, and no files. Paths are slash-separated and relative to the root
// of the repository, as git prints them.
//
// A Guard finds problems in any layout: it reads the versions out of the names right in a folder. Only new files are
// problems, so a duplicate that the target has switches nothing off.
//
//	0042_users.sql  0042_users.up.sql  042.do.users.sql   a number: new ones are above the highest
//	V1_252__users.sql  V1.2.3__users.sql  U1__users.sql   Flyway: as a number, for each letter
//	1.2.0.sql  1.2.0-users.sql                            a release
//	2026-01-01-users.sql                                  a day: in folders of migrations
//	20260101120000_users.rb  1767268800_users.sql         a time: a version is there once, in any order
//	2026_01_01_120000_users.php  20260101120000_users/    a time in groups; a folder that is one migration
//
// Heads does the same for migrations that name the one before in their text: Alembic and Django.
//
// A Rule is a directory and the pattern of the names in it, for renumbering: Renumber lists the renames that solve the
// problems that Check finds.
//
// Files that differ only in ending or direction, such as 0042_users.up.sql and 0042_users.down.sql, are one step and
// share its version.
package sequence
