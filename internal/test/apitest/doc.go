// Package apitest runs the HTTP API in the process of a test, with a journal in memory. The tests of the agents' doors
// use it, in fake time.
//
// It must never be imported by anything but tests, and never start a goroutine or a timer of its own: a bubble of
// testing/synctest would wait for it.
//
// Start reading at apitest.go.
package apitest
