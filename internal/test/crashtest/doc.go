// Package crashtest holds the tests that kill the real server, take its disk away
// or start it on a journal that it must refuse. It has no code but tests.
//
// The clients of these tests write down what the server acknowledged (ledger_test.go) and,
// after each restart, ask for all of it again: no acknowledged grant, release or note may be
// lost, no fence may be assigned twice, and the line must be unchanged. Calls that were under
// way when the server died are repeated under the same request id, so afterwards everything is
// known and nothing is open.
//
// The tests named after a history use agents of package traffic instead, which share keys,
// documents and tasks. Package history checks all their answers, while the server is killed
// (TestHistoryOfKills), it or a client stands still for longer than a ttl (TestHistoryOfStops),
// its disk fails (TestHistoryOfDiskFaults), or connections are cut and requests doubled
// (TestHistoryOfBrokenConnections). "make crash CRASH_TIME=2h CRASH_LIMIT=0" runs them for a
// night.
//
// Package crashtest must never accept "probably": an answer that is neither the
// promised one nor a broken connection fails the test.
//
// Start reading at kill_test.go, then worker_test.go, then fault_history_test.go.
package crashtest
