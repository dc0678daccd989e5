// Package trace is the command trace: what the journal has about a time, as spans of OpenTelemetry.
//
//	GET /v1/timeline?ended=true, part by part ──► internal/spans ──► standard output, or a collector
//
// It must never export a span twice in one run, nor leave one out without counting it.
//
// Start reading at trace.go; export.go walks through the time.
package trace
