// Package merger is the process of a merge queue: it takes submissions in the order of their queue, has the trees of
// chains of them checked, and lands what passes.
//
//	submitted ─► waiting ─► checked ─► staged ─► landed
//	                │           └─► returned: its checks fail
//	                ├─────────► returned: conflict, guards, policy ─► submitted again, in its old place
//	                └─────────► withdrawn, or superseded by a newer one of its workspace
//
// What it needs of the server are documents, tasks and one lease:
//
//	merge:REPO/TARGET                  Target: where the target is, and what is staged
//	merge:REPO/TARGET/submission/ID    Record: a submission's place, tries and outcome
//	merge:REPO/TARGET/landing/NUMBER   Landed: one landing
//	merge:REPO/TARGET/workspace/NAME   which submission of a workspace is the newest
//	merge:REPO/TARGET/health           Health: whether the merger works, and what it died of
//	withdraw:REPO/TARGET/ID            an author's wish to withdraw a submission that the merger has in line
//	verdict:REPO/TREE/CHECK            Verdict: the result of one check of one tree
//	queue merge.REPO.TARGET            submissions, with payloads of type Submission and results of type Outcome
//	queue check.REPO.CHECK             trees to check, with payloads of type Check; any worker takes them
//	queue Config.Resolver              conflicts, with payloads of type Resolution and results of type Answer
//
// The seat is the exclusive lease on merge:REPO/TARGET. It covers the keys below, and their pattern lets only its
// holder write them. Any number of mergers may run for one target; one has the seat, the others wait for it.
//
// A landing has three steps, and each can be repeated: (1) stage: the order and the computed commits go into the
// target's document, under the seat's lease; (2) move: git moves the ref together with the fence ref, both or none;
// (3) finish: landings, outcomes and the new head are written in one commit. Then the tasks get their results. A
// merger that takes the seat raises the fence first, so that no earlier one can move the ref any more, and repeats
// what it finds staged. The commits are functions of the documents, so it finds the same ones.
//
// Documents do not pile up: finish deletes those of landings before the last 1,000, and forget what nothing has asked
// for since Config.Keep.
//
// Package merger must never land a tree that was not checked, move a ref without the fence, or make a decision about
// the order: package merge/train decides, and package merge makes the trees.
//
// Start reading at merger.go (Run), then line.go (the loop), land.go (the three steps) and check.go. Beside these are
// guard.go (what is usually an accident) and fault.go (failures of one submission). What is opt-in has a file each:
// lease.go (leases on paths), resolve.go (a neutral resolver), impact.go (lanes).
package merger
