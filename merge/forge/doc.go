// Package forge has a forge merge a branch into another one by a request: a pull request of GitHub, Gitea and Forgejo,
// a merge request of GitLab.
//
//	Find(branch, base) ──► the request of the branch: open, merged or closed, or none
//	Open, Merge, Close ──► nil, a *Refused with the forge's words, or another error
//	Failing            ──► the checks of the forge that have failed on a commit
//
// Nothing here is evidence of where a branch is. A forge may merge later, in another way, or report a merge that it has
// not made; others may close a request, or change its title, base and branch. So a caller compares each request that
// it reads, and then reads the branch itself.
//
// Each call ends within Config.Within, and reads at most 4 MiB. The credential goes to the host of Config.URL alone,
// over TLS or the loopback interface: a redirection is an error. It is in no error, whatever the forge answers.
//
// Package forge must never follow a redirection, repeat a call by itself, or decide whether something has landed.
//
// Start reading at forge.go, then kind.go.
package forge
