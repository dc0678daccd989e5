// Package git is the guard of a git repository on the git server: a pre-receive hook that
// refuses a push which changes paths that another agent holds. The package lfs below it does
// the same for stock Git LFS clients.
//
//	git push ──► git receive-pack ──► pre-receive ──► Interlock
//	                                      │      GET the holders of repo:web/src/auth.ts
//	                                      └─ which paths change? git diff-tree
//
// A path that changes is a key, by a template ([Keys]). With [RequireNone] a push
// is refused when another agent holds a path of it, or something above or below
// that keeps writers out; with [RequireLease] when a path is not covered by a lease
// that the pusher shows.
//
// It must never let a push through if it could not find out its changes, or could not ask about
// its paths: a path that cannot be a key is refused.
//
// The answer is true when it is sent, and the refs move a moment later. A lease that is granted
// in between excludes a push that is already on its way only as a second opinion would: its
// holder reads the state after the push, and sees it.
//
// Start reading at hook.go, then change.go.
package git
