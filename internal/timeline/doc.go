// Package timeline computes what happened, and when, from the journal's events: bars (the waits and holds of
// leases, with their beginning and their end), marks (moments such as a deadlock or a refused fence), and links
// (the hold that a wait was for; the hand-off from one hold to the next). One Reducer feeds all that shows time: the
// answer of GET /v1/timeline and the file for Perfetto.
//
//	events in the order of the journal ──► Reducer ──► Timeline{Bars, Marks, Links}
//
// The kinds of bars, and how the bars of one lease follow each other:
//
//	wait ──► hold ──► (parked ──► [wait ──►] hold)* ──► lock_delay
//	           └ grace, within it and up to its end
//
// An attempt at a task is a hold with the kind attempt. A hold is the time of one fence: a conversion changes the
// claims and the fence, and parking may free the keys, so each ends one hold and a later grant begins the next one.
//
// Invariants:
//   - Each grant that the reducer has seen (a new fence of a lease) has exactly one hold or attempt, and each request
//     that was queued exactly one wait for each time that it stood in line.
//   - A bar never ends before it begins, and the bars of one lease overlap only as the drawing shows.
//   - Both ends of a link are bars of the same answer.
//   - The result depends on the events and the Filter alone: no clock, no I/O, no randomness, no order of a map.
//   - Memory is bounded: MaxBars, MaxMarks, MaxOpen, MaxLinks and the size of the index of ended holds. What does not
//     fit is counted. The shortest bars are left out first, for they are the ones that no page can show.
//   - Bars have no id of a lease, session or ticket, which are secrets.
//
// A reader that begins in the middle of a journal sees ends without a beginning. An end tells how long the wait or the
// hold took, so its bar is complete; a bar that began earlier and still goes on is not seen.
//
// Start reading at timeline.go; reducer.go folds the events, index.go finds the holds that a wait was for.
package timeline
