// Package git runs git so that its answers depend on the repository and the arguments alone.
//
// Each call starts with an environment made from nothing: no variable GIT_*, no HOME, no locale and no time zone of the
// caller, and no configuration of the machine or the user. The configuration of [Pinned] overrides the repository's
// own. So hooks, file system monitors, signing, colours, pagers and automatic garbage collection are off, and the
// options that change the result of a merge have one value everywhere.
//
//	Repository.Run(ctx, Call) ──► git ──► exit 0, or one of Call.Answers ──► Result
//	                                └───► anything else                  ──► *Error
//
// An exit code is an answer only where the caller lists it: 1 of merge-tree is a conflict, and 128 is git that failed.
// So a full disk or a broken object is never taken for a conflict.
//
// Names and object ids come from other agents. Check them with [CheckName], [CheckRef] and [CheckObject] before they
// become arguments; a call that passes a revision puts --end-of-options before it.
//
// Package git must never pass the caller's environment on, take a failure for an answer, or know what its calls are
// for.
//
// Start reading at run.go.
package git
