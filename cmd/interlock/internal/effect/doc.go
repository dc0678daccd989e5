// Package effect is the command effect: acts on the world outside that must happen once, with a
// command or by hand.
//
// It must never report an effect as done or not done when that is unknown.
//
// Start reading at effect.go, then run.go.
package effect
