//go:build !unix

package merge

// syncFolder does nothing: the file system journals names by itself, and a folder cannot be synced.
func syncFolder(string) error { return nil }
