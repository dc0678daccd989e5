// Package tasks holds examples of work that waits instead of its agent, for users with a shell:
// a fee that waits for its account, is put off by its worker, and is charged (fee.sh), tenants
// that share workers (tenants.sh), an account that only its writer changes (account.sh), and a
// refund that a person approves (refund.sh). The test runs them against a real server, so their
// output is what a reader sees.
//
// The package must never have Go code but its test. Start reading at fee.sh.
package tasks
