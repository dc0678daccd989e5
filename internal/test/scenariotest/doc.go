// Package scenariotest carries out the scenarios of clients/scenarios with every client library, against a real
// server behind a proxy that breaks, delays and repeats. It prints a table of clients and scenarios.
//
//	gate_test.go      a listener that can be closed, silenced and cut
//	http_test.go      the proxy of HTTP requests
//	stream_test.go    the proxy of session streams, for the client in Go
//	control_test.go   the steps of a scenario that concern the server and the proxy
//	value_test.go     references and matching, for the runner in Go
//	runner_test.go    the runner in Go; the others are in the folders of their clients
//
// Package scenariotest must never let an expectation depend on the request that a fault meets.
//
// Start reading at scenario_test.go.
package scenariotest
