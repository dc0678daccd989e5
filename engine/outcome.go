package engine

import (
	"github.com/interlockdev/interlock"
)

// The outcomes of commands.
const (
	Granted = interlock.OutcomeGranted
	Queued  = interlock.OutcomeQueued
	Skipped = interlock.OutcomeSkipped
	Done    = interlock.OutcomeDone
	Refused = interlock.OutcomeRefused
	Warned  = interlock.OutcomeWarned
	Lost    = interlock.OutcomeLost
	Asked   = interlock.OutcomeAsked
)
