package engine

import (
	"github.com/interlockdev/interlock/engine/record"
)

// The outcomes: see package record.
const (
	Granted = record.OutcomeGranted
	Queued  = record.OutcomeQueued
	Skipped = record.OutcomeSkipped
	Done    = record.OutcomeDone
	Refused = record.OutcomeRefused
	Warned  = record.OutcomeWarned
	Lost    = record.OutcomeLost
	Asked   = record.OutcomeAsked
)
