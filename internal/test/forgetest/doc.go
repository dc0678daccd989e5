// Package forgetest is a forge for tests: a bare repository that forbids pushes to its branches, and an HTTP server
// that merges requests in it, in the APIs of GitHub, Gitea and GitLab. Each call can go wrong: see Forge.Fault.
//
// It must never take a call for authentic without its token, or merge a commit other than the one that the call names.
//
// Start reading at forge.go, then api.go.
package forgetest
