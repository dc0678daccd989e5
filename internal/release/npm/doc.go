// Package npm builds the package of the client for TypeScript, as npm publishes and installs it.
//
// It compiles clients/typescript with the compiler that scripts/typescript-tools.sh installs, and packs what the
// compiler writes with the package's description, its README and the licence. The bytes depend on the sources, the
// compiler, the version and the time that it is asked for alone.
//
// Package npm must never pack a file that the sources did not make.
//
// Start reading at npm.go.
package npm
