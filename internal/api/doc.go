// Package api is the client of the HTTP API for the programs of this module: the command
// line, guards and the traffic of tests. It is the one place that adds credentials to a
// request, sets up TLS and connections, bounds answers, recognises a problem document, and
// decides which requests are sent again.
//
// This package must never put an address into an error, which may hold a secret such as a
// lease's id. It must never follow a redirect or use a proxy from the environment: either
// would get the credential.
//
// Start reading at client.go.
package api
