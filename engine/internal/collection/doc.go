// Package collection has the containers of the engine. All are generic, all allocate
// nothing but their own arrays, and most are intrusive: a member has a field that records its
// place, so that a removal takes no search and an entry costs no allocation.
//
//	Heap        binary heap; any member can be removed or fixed
//	ValueHeap   binary heap of values; only the first can be removed
//	List        doubly linked list
//	Set         unordered array, to be visited in parts
//	Queue       first-in, first-out queue in one growing array
//	PagedQueue  first-in, first-out queue with cheap snapshots
//	Table       hash table that grows in small steps and is visited in parts
//
// The zero value of each container is empty and ready for use. No container may be used by
// two goroutines at once, except for a snapshot of a PagedQueue.
//
// The same operations leave the same order on every machine: nothing here depends on an
// address, a map or a random seed of its own. The package knows no request, key or task and
// must never import another package of this module.
//
// Start reading at heap.go for the simplest intrusive container, and at table.go for the
// largest.
package collection
