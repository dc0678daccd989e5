// Package openapitest reads the OpenAPI document of a real server with the programs that its users have:
// validators, generators of clients for Python and TypeScript, and schemathesis, which makes requests up.
//
//	testdata/requirements.txt   the Python packages with their hashes, made from requirements.in
//	testdata/package-lock.json  the packages of npm
//	testdata/life.py, life.ts   the life of a lease, with the generated clients
//
// scripts/openapi-tools.sh installs the packages below dist.
//
// Package openapitest must never let a warning of a generator pass: a user of its client would lack a type.
//
// Start reading at openapi_test.go.
package openapitest
