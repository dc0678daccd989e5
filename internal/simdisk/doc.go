// Package simdisk is a disk in memory that loses, tears and fails as real ones do: for
// the tests of the file journal and for the simulation. It starts from the assumptions
// of docs/journal.md and must never be kinder than they are.
//
// Start reading at [Disk] and [Disk.PowerCut].
package simdisk
