// Package livetest runs real coding agents, Gemini CLI and OpenCode, on one file: with the hooks of
// Interlock, and without. Their models are scripted servers on loopback (model_test.go), so a run needs
// no account and no network.
//
//	testdata/package-lock.json  the programs, with their hashes; scripts/live-tools.sh installs them
//
// The tests are built with the tag live only, by "make live": they take some ten minutes, and the
// programs half a gigabyte.
//
// Package livetest must never count a run in which an agent did not finish.
//
// Start reading at live_test.go.
package livetest
