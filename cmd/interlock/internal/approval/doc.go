// Package approval is the command approval: it lists the questions that agents ask of people, and
// answers them.
//
// It must never show a question or a payload of an agent with its control characters.
//
// Start reading at approval.go.
package approval
