// Package train decides which chains of waiting submissions a merge queue checks next, which of them land, and
// which go back to their authors. It is pure: it has no clock, no I/O, no goroutine and no git.
//
// A chain is a list of submissions that are merged, in this order, onto the head of the target. The caller merges
// chains, runs checks of their trees, and reports what it finds: Add, Withdraw, Conflict, Verdict. Plan computes
// everything anew from the present state, so that signals may come late, twice or in another order. The caller
// carries out a plan and reports that too: Settle, Start, Cancel.
//
//	     head    batch 1        batch 2    ...
//	      │   a ─ b ─ c ─ d ─ e ─ f ─ g ─ h
//	car 1 └───────────────┘
//	car 2 └───────────────────────────────┘
//
// Car k is the chain of batches 1 to k. As many cars are checked at a time as there are runners. The rules:
//
//   - The longest chain that has passed lands as a whole. Its tree is the tree that was checked.
//   - A submission lands only after each earlier one has landed or gone back. (With Lanes: each earlier one
//     with overlapping impacts.)
//   - A failed batch is cut into prefixes, and all runners check prefixes. If the longest prefix that passed leaves
//     one suspect, the failed chain is the suspect's own tree: it is not checked again for this.
//   - A submission goes back only if its own tree, on the head, has failed more than Repeats times and never
//     passed. Repetitions run beside the prefixes. A pass after a failure of the same tree counts as flaky.
//   - Meanwhile other runners check chains without the suspects.
//   - A conflict with a submission that has not landed yet only takes the later one out of chains with the earlier
//     one. It goes back when the earlier one has landed.
//   - The batch size grows by one for each batch that lands, and is halved for each submission that goes back
//     because of its checks.
//
// Begin with Train, then Plan in plan.go. What is known about chains is a tree of nodes, in chain.go.
package train
