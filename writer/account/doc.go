// Package account is a single writer for money: the one agent that changes the balances of
// accounts; all others send their commands to it. It is also the example of how to write a
// single writer for anything else.
//
//	agents ── credit, debit, hold, ... ──► mailbox of account:12345
//	                                          │ one message at a time
//	                                          ▼
//	                    Agent.Handle ──► Decide(policy, state, command, now)
//	                                          │
//	         state, reply, messages to other accounts: one acknowledgement
//
// # How to write a single writer
//
// An operator names a queue: its workers alone may change the keys of a pattern. Then there are
// four parts.
//
// 1. A pure function decides. [Decide] takes the policy, the state, the command and the
// time, and returns the state after it, the reply, and messages to other accounts. It reads no
// clock and does no I/O. So it can be tested without a server, run again over the log of a key
// to prove that nothing was changed behind its back ([Replay]), and it decides the same after a
// crash.
//
// 2. The state is a JSON document, small and bounded: finished items are forgotten by a stated
// rule. It holds all that the next decision needs. The inputs of a decision that are not in the
// log besides (its requester, time, priority and approver) are in the reply.
//
// 3. A handler joins them ([Agent.Handle]): it reads the state that came with the
// message, decides, and returns state, reply and further messages in one [client.Done].
// All of it is written in one step or not at all. The handler may therefore crash
// anywhere: the message is handed out again, with the state as it was.
//
// 4. A refusal is a reply, not an error: it was decided, is in the log, and names what to
// do next. An error of the handler means that it could not decide, so that the message
// is tried again.
//
// # Money between two accounts
//
// No step touches two accounts. A transfer is a hold at the source that is captured when
// the target has its money, in the manner of two-phase transfers in TigerBeetle:
//
//	source                           target
//	pending: hold ── credit ───────► record id, add to balance
//	post: hold and balance fall ◄─── post
//	                 ── forget ────► the record may go
//
// If the target cannot take the money it answers void, and the hold ends. If no answer has come
// by the end of the transfer's time (the message is a dead letter, say), the source asks; a
// target that has not recorded the transfer never will, because it refuses a credit past its
// time, and answers void. Each step carries the transfer's id, so a message that comes twice
// does nothing the second time. The money is thus at exactly one of both places, whatever
// crashes, and whatever is lost or repeated on the way.
//
// # Requesters
//
// The sender of a message is the one that the server knows: the credential's principal, or
// without credentials the agent's name ([Requester]). Nothing in the body counts. A message's
// report of a transfer is believed only if the server states that the writer of the other
// account sent it, at work on a message to that account ([Origin]).
//
// # What is kept for ever
//
// The server keeps the log of an account for its last entries. A [Ledger] copies them to a
// file, as lines with a chain of hashes; an Agent that has one decides no message before
// everything decided earlier on the account is in it. [File] is the policy file of
// "interlock account serve".
//
// Package account must never decide by anything but Decide, and never let an adviser
// allow what the policy does not.
//
// Start reading at decide.go; agent.go is the handler, client.go is for requesters, ledger.go
// keeps what was decided.
package account
