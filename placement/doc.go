// Package placement decides where the work of several active servers is done. It answers two questions,
// by arithmetic alone:
//
//	namespace ──Directory.Shard──► shard ──Planner──► server
//
// Which shard does a namespace belong to? A hash of its name decides (Shard), and a Directory has the
// exceptions: namespaces that an operator moved, and moves under way. A directory is a small value that
// servers share by compare-and-swap; a stale copy costs a hop and never an answer, because only the owner
// of a shard's journal answers.
//
// Which server owns a shard? Each has a seat in a store, and the holder of the seat is the server that
// tries to be the owner. No server assigns seats to others. Each has a Planner, calls its Step every half
// second with what it sees in the store, and carries out the decision: seats to try to take now, and at
// most one to give up. From the same view all planners make the same plan (NewPlan):
//
//   - A free shard goes to the member with the lowest level, which is (2*held+1)/weight; members with the
//     same level are in rendezvous order (Order). This is the method of Sainte-Laguë: with equal weights
//     each share is shards/members, rounded down or up, and with others the same part of the weights, one
//     shard more or less (with twenty members sometimes two).
//   - A held shard moves only if that makes the shares more even: the sum of held²/weight over all members
//     becomes smaller with every move. So servers never pass a shard to each other in turn. A member that
//     leaves moves its own shards only, and one that joins receives its share and moves no others.
//   - Draining members give all up. They, members that rest after they lost seats, and members that left a
//     seat free that was theirs to take receive nothing as long as there is another. A shard goes only to
//     members that can read the newest entry of its journal.
//
// The plan is advice. If two servers have different views, both may try to take one seat: the store
// seats one of them. If both have seats by mistake, the epoch in the shard's journal fences one of them.
// Nothing here must be right for a lease to be safe; it must be right for shards to have an owner.
//
// The package must never read a clock, do I/O, start a goroutine or depend on the order of a map: time
// is an argument. Its hash and the shards that it computes are part of the data on disk and never change.
//
// Start reading at plan.go, then planner.go; directory.go is about namespaces.
package placement
