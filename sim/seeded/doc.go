// Package seeded tries the checks out: it puts known mistakes into the product, one at a
// time, and sees whether a check finds each, and how soon. A check that no mistake has
// tried is only believed to work.
//
//	bugs/NAME.bug ─► overlay ─► go build -overlay ─► finder ─► found, or not within a minute
//
// A mistake is a small text file: what it is, which invariant it breaks, the text of one file
// that it replaces, and the checks that are to find it, in their order. Its file is made in a
// temporary directory and passed to the compiler as an overlay, so the tree is never touched
// and no mistake can reach the product. The finders are the checks that there are anyway:
// simulated worlds, the reference model, crash states, the suite of a package. None is written
// for a mistake. If one is missed, the check is made better.
//
// The package must never count a mistake as found because it did not compile, nor because a
// finder fails by itself: each finder has to pass without a mistake, too. Nor because a finder
// exceeded its limit: that does not show what is wrong.
//
// Start reading at bug.go, then run.go.
package seeded
