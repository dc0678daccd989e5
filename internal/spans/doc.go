// Package spans computes spans of OpenTelemetry from a timeline, and writes them as OTLP in JSON. It is pure: the same
// timeline always makes the same spans, byte by byte.
//
//	api.Timeline ──► Of ──► []Span ──► Encode ──► body of POST /v1/traces
//
// What becomes a span, and its parent:
//
//	span        from .. to                    parent
//	wait        queued .. granted, or left    the caller's span
//	hold        granted .. ended              the caller's span, or else its wait
//	grace       the hard end .. the end       the hold
//	lock_delay  the holder's death .. free    the hold
//	parked      put aside .. resumed          the caller's span, or else the hold
//	task        submitted .. settled          none
//	attempt     handed out .. ended           the task
//	refused     a moment                      the hold that had the fence
//
// The caller's span is that of the request's traceparent. A wait is linked to the holds that it was for
// ("blocked_by"), and a hold to the one that its keys came from ("handed_on").
//
// Invariants:
//   - An id is a hash of facts that the journal has once: the public name of the lease, the fence, the entry of the
//     end, the task. So each export of a part of the journal has the same ids, and both ends of a link can be named
//     without the other one.
//   - What still goes on has no span: a later export has it.
//   - A name of a span is never a key, an agent or a purpose: their number has no bound.
//   - Names of conventions that others define stand in convention.go, and nowhere else.
//
// Start reading at span.go.
package spans
