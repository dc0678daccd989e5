// Package merge is the merge boundary: what a submission makes of a target, as a function over a git repository.
//
//	Land(parent landing, submission, times) ──► tree and commit id, or a Refusal with the conflicts as data
//
// Its inputs are the landing before, the submission's commits, the style, the message and two times, and the
// [Profile]: the version of git, its configuration, merge drivers, and the attributes of the parent's tree. The same
// inputs give the same commit id in any folder, at any time, for any user and machine. So a merger that was killed
// repeats its step and gets the commit that it had, and [Boundary.Verify] recomputes every landing of a branch from
// the branch alone: a landing's commit carries its number, its submission and its profile.
//
// A boundary works in a git directory of its own, made for the profile, that borrows the objects of the repository.
// The repository's configuration, attributes, grafts, hooks and refs take no part. The attributes are those in the
// tree of the landing before, so a change of .gitattributes counts from the next landing on.
//
// Two invariants are checked at each landing and by Verify: recomputing makes the same tree, and a path that the
// submission does not touch is in the new tree as it was in the old one. A path that the target has renamed counts as
// touched under its new name.
//
// The ref moves in one transaction with a fence ref ([Target]): git refuses it when the ref is not where the landing
// was computed, or when a later merger has raised the fence. Each step can be repeated.
//
// Package merge must never read a clock, call a network service or decide an order. Times and numbers come from its
// caller, which has them from a journal. It must never take a failure of git for a conflict.
//
// Start reading at land.go, then target.go and verify.go.
package merge
