// Package cluster lets several servers share the shards of one journal. Every server runs a [Node], and the
// nodes agree through two small values beside the journal, which the journal's engine compares and swaps:
//
//	directory   how many shards there are, and which namespaces are not where their hash puts them
//	servers     the members with their addresses and beats, and which of them has the seat of each shard
//
// A node beats once a second, reads the table twice a second, and lets [placement.Planner] decide which free
// seat it takes and which one it leaves to others:
//
//	        seat taken          journal opened
//	free ──────────────► taking ──────────────► owned ──► leaving ──► free
//	 ▲                     │                      │      (drained)
//	 └─────────────────────┴──────────────────────┘
//	   the open failed · fenced, cut off or killed: others free the seat after its time
//
// A server that leaves a shard in order names the next holder of the seat, if there is one that it reaches, and wakes
// the other members: they look at the table at once.
//
// Why so:
//
//   - One value for all seats costs the same whether there are 16 shards or 1,024: a read and a swap a second
//     for each server, also in a store where each request is paid for.
//   - A member without beats that answers nothing either has half the time of one that answers: see reach.go.
//   - A beat is compared with the beat that the reader saw before, on the reader's own clock. No clocks of two
//     machines are ever compared.
//   - A seat proves nothing. The journal's epoch decides which server may answer for a shard: the seat only keeps
//     healthy servers from fencing each other in turn.
//   - The table of a moment ago is good enough to find an owner: a call that arrives at another server is
//     refused there.
//
// This package must never answer a call, and never open a journal without the seat.
//
// Start reading at table.go, then node.go.
package cluster
