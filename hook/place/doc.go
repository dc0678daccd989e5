// Package place knows where a file is: the copy of a repository that it is in, and its path there.
//
// A copy is a work tree. Its name is that of the repository and, behind an '@', an id of its top folder:
//
//	web@3f2a91c4d0             a clone, a submodule, or a repository in another one
//	web@fix-login-81b55aa6c2   a linked worktree or a workspace, with the name that git or Interlock keeps for it
//
// The id is a digest of the machine (of its running kernel, which containers share), and of the device and inode of the
// folder. So a copy has one id by all its paths, through links, bind mounts and moves, and no two folders have the same
// one. Nothing is kept in the repository: what is kept there is copied by cp -r, and any agent can write it.
//
// A path is spelled as its folders compare names: in lower case below a folder that ignores case, and in normal form C
// below one that ignores normal forms. The disk is asked, not the operating system: both kinds are on most systems.
//
// It reads the file system only: it starts no git process, so that a hook costs microseconds. A binary of a few
// megabytes uses it, so it imports little. It must never decide what is a valid key: see package hook.
//
// Start reading at place.go.
package place
