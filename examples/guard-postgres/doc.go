// Package guardpostgres is an example for agents that write to PostgreSQL: two of them are
// frozen while they think, wake up when their leases have passed on, and are refused by the
// database; the present holder of the key is not. The test runs it against a real Interlock and
// a real PostgreSQL, so its output is what a reader sees.
//
// The package must never have Go code but its test. Start reading at zombies.sh.
package guardpostgres
