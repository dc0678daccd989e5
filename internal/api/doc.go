// Package api is the client of the HTTP API for the programs of this module: the command
// line, guards and the traffic of tests. It is the one place that adds credentials to a
// request, sets up TLS and connections, bounds answers, recognises a problem document, and
// decides which requests are sent again.
//
// This package must never put an address into an error, which may hold a secret such as a
// lease's id. It must never follow a redirect or use a proxy from the environment: either
// would get the credential.
//
// The package also has the bodies and answers of the API as structs. They are their one
// definition: internal/gen writes the server's decoders and writers and the schemas of
// openapi.json from them, so a comment of a field is its public description.
//
// Start reading at client.go; for the bodies at request_lease.go and lease.go.
package api
