// Package redis is the guard for Redis: a script that compares a fence with the highest
// that was seen for its key, and runs one command, in one step.
//
//	EVALSHA sha 2 fence:{account:12345} {account:12345} 42 HSET {account:12345} balance 900
//	FCALL interlock_fenced 2 fence:{account:12345} {account:12345} 42 HSET ...    Redis 7
//
// It is right because Redis runs one script at a time. It does not refuse a client that writes
// without it: Redis has no triggers, and a user that may run a command inside a script may run
// it outside, too. So there is nothing to attach; let agents reach Redis through something that
// runs the script.
//
// The package must never talk to a server, or hold a word of Lua that the command does
// not print.
//
// Start reading at fenced.lua.
package redis
