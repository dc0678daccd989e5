// Package redisserver starts servers of Redis and of Valkey for a test: Debian's Redis, and the Valkey that
// scripts/valkey.sh installs, each in a directory and at a port of its own.
//
// It must never be imported by anything but tests, never touch a server that it did
// not start, and never let a test pass because there is no server.
//
// Start reading at redisserver.go.
package redisserver
