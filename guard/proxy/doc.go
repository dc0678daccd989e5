// Package proxy is the guard of an HTTP API: a reverse proxy that agents call in
// place of the API, with their lease in a header, and that alone has the API's
// credential.
//
//	agent ── Interlock-Lease ──► proxy ── credential, Interlock-Fence ──► API
//	                               │
//	                               └─ is it live? does it cover the key? ──► Interlock
//
// A [Config] maps methods and paths to keys. For a route that demands a lease the proxy asks
// Interlock, at every call, whether the lease is live and may write the key. Then it waits its
// turn: of one key, calls under one fence alone are under way at a time, and none under a lower
// fence follows one under a higher, so that what a late agent sent cannot arrive in the middle
// of its successor's work (turn.go).
//
// It must never let a call through that no route allows, never send to the API, or
// match a rule by, another path than the one it understood (path.go), and never
// show the credential. When Interlock cannot be asked, nothing goes through.
//
// A route may demand a signed fence instead, which is verified here (statement.go).
//
// Positive answers are not cached: a cache of a second is a second in which a revoked lease
// writes, and the question costs less than the call that it guards. A call after a restart is
// checked anew, and signed fences of before do not count. The calls under way are kept over a
// restart: a killed guard leaves calls running in the API, so the next one holds their keys
// until their timeouts have passed (ledger.go).
//
// Start reading at proxy.go, then config.go.
package proxy
