// Package database clones a database for a workspace, and drops the clone with it.
//
//	source                           clone                     how
//	postgres://USER@HOST/NAME        INTERLOCK_REPO_NAME_...   CREATE DATABASE .. TEMPLATE, or pg_dump and psql
//	sqlite:PATH                      a file of a folder        the backup of the program sqlite3
//
// A clone of PostgreSQL is a database of the same server. Its name is derived from the source, the repository and
// the workspace, and a comment on it records the three, so that a list of clones needs the server alone.
//
// Invariants: a source is read and never written; a database that this package did not make is never dropped
// (its comment is compared); connections of others are ended only on request; no error, list or command line of a
// program has a password.
//
// A connection reaches whatever its user may reach: cloning does not keep an agent out of other databases of the
// server. Give the source as a user that may not.
//
// Start reading at database.go, then postgres.go.
package database
