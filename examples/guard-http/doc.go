// Package guardhttp holds an example of "interlock guard http": an API (api.py) that
// agents have no credential for, and the guard before it (http.sh, guard.json). The
// test runs it against a real server, so what it prints is what a reader sees.
//
// The package must never have Go code but its test. Start reading at http.sh.
package guardhttp
