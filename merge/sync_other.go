//go:build !unix

package merge

// foldersSync tells that a folder cannot be synced: the file system journals names by itself.
const foldersSync = false
