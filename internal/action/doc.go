// Package action makes the canonical form of an agent's external action. The same action has
// one form, however it was written down, so that an effect is identified by its action.
//
// The form is the canonical JSON of RFC 8785 of an object with the members
// arguments, target and tool. It must never give two different actions one form, and
// that is why some JSON is refused: see Canonical.
//
// Start reading at canonical.go.
package action
