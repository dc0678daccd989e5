//go:build !unix

package serve

// mayOpen is how many file descriptors the process may have; 0 when that is not known.
func mayOpen() uint64 { return 0 }

// addressSpace is how much of it the process may have; 0 for any.
func addressSpace() uint64 { return 0 }
