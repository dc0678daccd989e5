//go:build !unix

package workspace

// There are no named pipes in folders here.
const noWait, onlyFolder = 0, 0
