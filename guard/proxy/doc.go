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
// turn: at any time, a key has calls in progress under one fence only, and none under a lower
// fence follows one under a higher, so that a call of a late agent cannot arrive in the middle
// of its successor's work (turn.go).
//
// It must never forward a call that no route allows, never send to the API, or match a rule
// by, another path than the one it understood (path.go), and never show the credential. While
// Interlock cannot be reached, it forwards only calls of open routes.
//
// A route may demand a signed fence instead, which is verified here (statement.go).
//
// Positive answers are not cached: during a second of cache a revoked lease could write, and the
// check costs less than the call that it guards. After a restart every call is checked again, and
// earlier signed fences are refused. Calls in progress are kept over a restart: a killed guard
// leaves calls running in the API, so the next one blocks their keys until their timeouts have
// passed (ledger.go).
//
// Start reading at proxy.go, then config.go.
package proxy
