// Package resp is the door for programs that speak the Redis protocol: the locks of their libraries are
// leases, the same ones as at every other door.
//
//	server.go    the listener: connections, limits, the end
//	conn.go      one connection: reads commands, lets them be carried out, answers
//	together.go  commands that came together are carried out at the same time
//	relay.go     a connection about the keys of another server
//	reader.go    the protocol's commands; writer.go its answers, in versions 2 and 3
//	command.go   the table of commands
//	connect.go   HELLO, AUTH, CLIENT and what else clients send before they begin
//	key.go       SET, GET, DEL, EXPIRE and the other commands about keys
//	eval.go      EVAL, and the forms of scripts (package resp/script)
//	lock.go      what all of them do with leases
//	grants.go    what the door remembers of the leases that it took
//	value.go     how the value of a key is kept in its lease
//	refusal.go   errors in the words of the API
//
// A key is an exclusive lease without a session, and the value is its purpose. So an SET NX excludes the
// agents of all other doors, and survives a restart. Commands go to the shard through server.Caller,
// behind the same checks as every call of the HTTP API.
//
// This package must never run Lua, end a lease of another door, or end one before its
// client's time. It must never hold state that matters: what grants.go forgets is read from the shard.
//
// Start reading at lock.go.
package resp
