// Package account is the command account: the writer of accounts, its set-up, and the ledger that
// it keeps.
//
// The policies stand in writer/account. The ledger must never lose a line that another process may
// have read, and never have one twice: a file that is behind the server is continued, and one that
// contradicts it is refused.
//
// Start reading at account.go, then serve.go and ledger.go.
package account
