// Package prose makes the sentences that people and agents read: what to do next after an answer
// (For, ForLease, ForCode), why a key or an agent is stuck (ExplainKey, ExplainAgent), and the
// phrases of the command line. The server and the command pass it codes and values; neither makes
// such a sentence itself.
//
// Package prose must never decide anything: it reads values and returns text. Names, purposes and
// notes are other agents' text: each passes cleanText, and is quoted unless it is plain words.
//
// Start reading at advice.go.
package prose
