// Command release builds everything that a release publishes, from a checkout, into one directory:
//
//	go run ./internal/release -o dist/release
//
//	interlock_0.2.0_linux_amd64.tar.gz ...   binary, licences, completions; a zip for Windows
//	interlock_0.2.0_amd64.deb ...            Debian packages, and RPMs, with the systemd unit
//	interlock_0.2.0_linux_amd64.cdx.json ... the modules in each binary, as a CycloneDX bill of materials
//	interlockdev-client-0.2.0.tgz            the client for TypeScript, as npm installs it
//	interlock_client-0.2.0-py3-none-any.whl  the client for Python, and its sources, as pip installs them
//	interlock.rb                             the Homebrew formula, with the checksums of the archives
//	SHA256SUMS                               of all the others
//
// With -image it builds the image of the server instead, by the Dockerfile, with buildah or docker:
//
//	go run ./internal/release -image -o dist/image
//
// The version is the tag of the commit; without one it is v0.0.0 with the time and the id of the commit, as Go writes
// it. All files, and the ids of images, depend on the commit and the versions of Go, of the TypeScript compiler and of
// hatchling alone: built twice they have the same bytes.
//
// Command release must never upload or tag, and never publish a checkout with changes under a version.
//
// Start reading at main.go.
package main
