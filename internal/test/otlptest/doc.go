// Package otlptest receives what interlock sends to a collector of OpenTelemetry with the collector's own decoder.
//
// It is a module of its own, so that the collector's packages are no dependency of the server. A test starts a real
// server, lets agents wait for each other, and exports spans to a receiver on the loopback address.
//
// It must never reach beyond the loopback address. Start reading at trace_test.go.
package otlptest
