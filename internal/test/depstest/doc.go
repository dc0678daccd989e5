// Package depstest tests the scripts that install what other tests need: scripts/install-deps.sh and those it calls.
//
// It runs copies of them in folders of its own, with programs in PATH that only note how they are called.
//
// It must never reach a network, an installed package or the cache of its user.
//
// Start reading at rig_test.go.
package depstest
