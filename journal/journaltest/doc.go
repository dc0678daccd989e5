// Package journaltest is the suite that every journal backend passes: the law in
// package journal, point by point, and the contract of each method. A backend
// runs it with one line:
//
//	journaltest.Run(t, func(t *testing.T) journaltest.Open { ... })
//
// It must never reach behind the interface or know a backend: what it cannot see
// through [journal.Journal] (crashes, damage, full disks) each backend tests by
// itself.
//
// Start reading at [Run].
package journaltest
