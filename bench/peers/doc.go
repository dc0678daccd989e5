// Command peers puts the load of "interlock bench" on Interlock and on what people use in
// its place, in turn and on one machine, and prints how they compare:
//
//	peers:  one service by one of its clients, with what its answer promises
//	          │ bench.Target
//	          ▼
//	bench.Scenario ──► figures ──► ratios, ours ÷ the peer's, run by run
//
// It is a module of its own, because it links etcd's server and other services' clients: users
// of Interlock must never download those.
//
// Each run has a fresh service on a free port of loopback, with its data in a temporary
// directory. Command peers must never install anything, never end a process that it did
// not start, and never leave one behind; and it must never show a figure of a service
// without saying whether that service's answers are durable.
//
// Start reading at main.go, plan.go and peer.go; each service and each client has a file of its own.
package main
