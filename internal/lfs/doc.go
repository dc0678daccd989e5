// Package lfs knows what Git LFS keeps outside of commits: a commit has a pointer of a few lines in place of a large
// file, and the content is an object in a store beside those of git, named by its SHA-256.
//
//	commit ── pointer, version https://git-lfs.github.com/spec/v1 ──► lfs/objects/aa/bb/aabb…
//
// It reads commits of git directories that no agent writes, and runs no filter. Package lfs must never decide by the
// text alone what is a pointer: documentation has pointers, too. Its callers select paths by their attributes.
//
// Start reading at pointer.go.
package lfs
