// Package guardgit holds examples of "interlock guard git": a pre-receive hook that refuses a
// push of files that others hold (git.sh), and the locks of Git LFS (lfs.sh). The test runs
// them against a real server, so their output is what a reader sees.
//
// The package must never have Go code but its test. Start reading at git.sh.
package guardgit
