package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// Descriptions of tasks and log entries, with reasons that package prose puts in words.
type (
	Task     = store.TaskView
	Attempt  = store.AttemptView
	Approval = store.ApprovalView
	LogEntry = store.LogEntryView
)

// Assignment is a task that is assigned to a worker. Its Task hides the one in interlock.Assignment,
// which is empty.
type Assignment struct {
	interlock.Assignment
	Task Task
}

// SideEffect describes an external action that is claimed once. Its Reason hides the one in
// interlock.Effect, which is empty.
type SideEffect struct {
	interlock.Effect
	Reason *message.Text // of an unknown one: the known facts
}
