// Package view is the resources of the HTTP API as the commands show them: their paths, their
// forms, the words for their states, and their names for the Tab key. Fields that a later server
// adds are passed over.
//
// It makes no calls but for the Tab key, and must never show text of other agents with its control
// characters.
//
// Start reading at lease.go, then task.go and event.go.
package view
