// Package doorstest tries the doors of a real server with programs of others: the conformance suite of the
// Model Context Protocol, its Inspector, and agents by the SDKs for Python and TypeScript. The compiler of
// TypeScript checks the plugin for OpenCode against OpenCode's own types.
//
//	testdata/requirements.txt   the Python packages with their hashes, made from requirements.in
//	testdata/package-lock.json  the packages of npm
//	testdata/client.py, .mjs    an agent by each SDK
//	testdata/opencode           what the plugin for OpenCode has to be
//
// scripts/door-tools.sh installs the packages below dist.
//
// Package doorstest must never list a scenario of the conformance suite as passed that has warnings.
//
// Start reading at mcp_test.go.
package doorstest
