// Package tasks holds examples of work that waits instead of its agent, for those who
// have a shell: a fee that waits for its account, is put off by its worker, and is
// charged (fee.sh), tenants that share workers (tenants.sh), an account that only its
// writer changes (account.sh), and a refund that a person approves (refund.sh). The test
// runs them against a real server, so what they print is what a reader sees.
//
// The package must never have Go code but its test. Start reading at fee.sh.
package tasks
