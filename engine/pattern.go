package engine

import "github.com/interlockdev/interlock"

// Patterns lists a namespace's key patterns by their names.
func (e *Engine) Patterns(ns interlock.Namespace) []interlock.Pattern { return nil }

// Settings gives a namespace's settings.
func (e *Engine) Settings(ns interlock.Namespace) interlock.Settings { return interlock.Settings{} }
