package engine

import "github.com/interlockdev/interlock/engine/internal/store"

// Types of the state that commands and answers name.
type (
	Time     = store.Time
	Caller   = store.Caller
	Conflict = store.Conflict
	Loss     = store.Loss
	AskedAt  = store.AskedAt
	ParkedAt = store.ParkedAt
	Bar      = store.Bar
)

// StepObjects bounds the objects that a step looks at.
const StepObjects = store.StepObjects
