// Package workspace has a place of its own for each agent on this host to work in: a tree of files at
// one commit of a repository, and a private git directory, which borrows the objects of that
// repository.
//
//	source repository  ◄─ objects borrowed ─ private git directory ◄─ .git ─ tree, where the agent works
//	 refs/interlock/base/REPO/NAME/COMMIT      own refs, stash,                overlay │ worktree
//	 refs/interlock/saved/NAME                 index, configuration            reflink │ sparse
//
// All workspaces are below one folder, the root of a Host:
//
//	REPO/NAME/workspace.json   the record: what the workspace is, see Record
//	REPO/NAME/git              the private git directory
//	REPO/NAME/vault            a bare git directory that no agent sees; see vault.go
//	REPO/NAME/tree             the files: the path that an agent gets
//	REPO/NAME/upper, work      what an overlay wrote over its base
//	REPO/.base/COMMIT          a base checkout: files of one commit, shared and never written
//	REPO/.lock                 locked while workspaces are made and deleted
//
// Kinds differ in how the tree comes to have its files, and in nothing else; see Kind.
//
// Invariants:
//
//   - Nothing is deleted unseen. Delete refuses while there is work that was not submitted, and with
//     force saves it first; see Delete. Files that git ignores are not saved.
//   - A base checkout is never written while an overlay lies over it. If its files or its folder have
//     changed, it is refused (ErrBaseChanged). It is removed with the last workspace that uses it.
//   - The source keeps each object that a workspace borrowed through this package, by refs. An agent
//     can borrow others, by writing content that the source has already: so the source's
//     gc.pruneExpire is never while there are workspaces. Nothing else of its configuration is
//     written. `git gc --prune=now` or `git prune` in the source overrides it, and breaks workspaces.
//   - Git runs on what an agent writes in a sandbox alone; see Room. What others rely on is computed in
//     the vault.
//   - A workspace that was not completed, because the process was killed, holds no work. It is removed
//     when its name is used again, or by Delete.
//
// The package holds no lease and asks no server: its caller makes sure that one process at a time
// works on a workspace. What several processes share, the base checkouts and the names, is under a
// file lock.
//
// Start reading at record.go, then create.go and delete.go.
package workspace
