// Package traceparent reads the header of W3C Trace Context with the trace and the span of a caller. It must never make
// such a header: Interlock begins no span while it serves.
//
// Start reading at Parse.
package traceparent
