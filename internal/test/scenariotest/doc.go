// Package scenariotest carries out the scenarios of clients/scenarios with every client library, against real
// servers behind proxies that break, delay and repeat. It prints a table of clients and scenarios. And it lets clients
// of all libraries compete at the same time, and has package history check what their callers are shown.
//
//	stage.go      the servers of one scenario, their proxies, and the process of the runner
//	control.go    the steps of a scenario that concern them
//	gate.go       a listener that can be closed, silenced and cut
//	http.go       the proxy of HTTP requests
//	stream.go     the proxy of session streams, for the client in Go
//	library.go    the runners; those of other languages are in the folders of their clients
//	runner.go     the runner in Go: the test binary itself, as a process of its own
//	value.go      its references and its matching
//	process.go    a runner that is sent its steps
//	agent.go      a client of a history, in such a runner
//	redis.go      a program for Redis in a history
//	crowd.go      the clients of a history, and the faults
//
// Package scenariotest must never let an expectation depend on the request that a fault meets.
//
// Start reading at table.go, then stage.go.
package scenariotest
