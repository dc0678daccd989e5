// Package search decides how far the random searches of tests go.
//
// A search tries seeds, and could go on for ever. It has three shares: the short form tries a few seeds, the long form
// those that every change has to survive, and each round of a night ("make night") as many as the long form, from the
// seeds where the round before ended. No seed is tried twice: what earlier nights have tried is in reliability.json.
//
// It must never be imported by anything but tests.
//
// Start reading at search.go.
package search
