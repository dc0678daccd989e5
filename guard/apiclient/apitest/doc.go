// Package apitest provides tests of guards with a real Interlock server in their own process,
// with its journal in memory. It is one function, [Serve], and must never be imported by
// anything but tests.
package apitest
