package store

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// Tasks and log entries as answers describe them, with their reasons as messages: a person's words,
// or a number and values. Each type hides the fields of the type in it that it names itself, which
// are empty. Package prose returns the whole with the reasons in words.

// TaskView describes a task.
type TaskView struct {
	interlock.Task
	Attempts []AttemptView
	Approval *ApprovalView
	Reason   *message.Text // why it is dead or cancelled, or fails; nil for none
}

// AttemptView describes an attempt at a task that has ended.
type AttemptView struct {
	interlock.Attempt
	Reason *message.Text
}

// ApprovalView describes the question about a task.
type ApprovalView struct {
	interlock.Approval
	Reason *message.Text // of the verdict
}

// LogEntryView describes an entry in the log of a key.
type LogEntryView struct {
	interlock.LogEntry
	Reason *message.Text // why the message is dead or cancelled
}
