// Package typescriptdoors tries the package of the client for TypeScript where its users have it: with the AI SDK and
// LangGraph.js with fake models, on Deno and Bun, and under the checks of publint and attw.
//
//	testdata/package-lock.json   the packages of npm with their hashes
//	testdata/scenes.ts           the scenes that each framework plays
//	testdata/smoke.mjs           what runs on every runtime
//	testdata/standby.mjs         the thread that keeps leases, on every runtime
//	testdata/commonjs            the same with CommonJS
//
// scripts/typescript-tools.sh doors installs the packages below dist.
//
// Package typescriptdoors must never test the sources of the client: only the package as it is installed.
//
// Start reading at doors_test.go.
package typescriptdoors
