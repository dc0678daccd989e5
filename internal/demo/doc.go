// Package demo plays scenes that show what Interlock is for. In the race fifty agents charge
// fees and grant credits on a handful of accounts.
//
//	plan ──► uncoordinated: read the file, think, write the file
//	   └───► under leases:  acquire the account, read, think, write with the fence,
//	                        release; one agent is frozen, one is killed
//	                 └────► both side by side, and a verdict
//
// Both runs do the same fifty updates at the same moments, with the same think times: those of
// fifty consecutive requests to a real service (package trace), replayed faster, and the output
// states by how much. The accounts are plain files outside of Interlock, so nothing protects
// them but the lease and the fence check at the file (guard.go).
//
// The server is a process of its own, and so are the agent that is frozen
// (SIGSTOP) and the one that is killed (SIGKILL). The other agents are goroutines,
// each with a session of its own.
//
// In the stale scene two agents change one account and one file while the other one
// thinks, in four ways at once (stale.go): what is lost without a strategy, and what
// each strategy costs in waiting and in thinking twice.
//
// In the account scene fifty agents send their commands to the single writer of one
// account (package writer/account), which is killed in the middle (SIGKILL), and so is
// the server; one agent tries to go around the writer.
//
// In the agents scene coding agents edit one repository, without hooks and with them
// (coding.go): each event goes to the hook program, and from there to a server.
//
// In the isolate scene twenty coding agents change one program, and first push, then submit to a merge queue from
// workspaces (isolate.go): the commands are those that a person types.
//
// Package demo must never print a figure that it has not counted, and never pass
// when its claim does not hold: Race, Stale, Account, Agents and Isolate then return
// an error.
//
// Start reading at race.go, stale.go, account.go, coding.go and isolate.go.
package demo
