//go:build unix

package merge

// foldersSync tells that a folder can be synced.
const foldersSync = true
