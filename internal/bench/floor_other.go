//go:build !linux

package bench

import "os"

// syncFlag makes every write of a file durable before it returns.
const syncFlag = os.O_SYNC

// syncData makes a file durable.
func syncData(f *os.File) error { return f.Sync() }
