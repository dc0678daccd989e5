// Package frameworktest tests the extras of the client for Python with the agent frameworks that they are for, each in a
// venv of its own and with a fake model: a free key, a held key, a tool that raises, a cancelled run, and two agents
// that race for one key.
//
//	testdata/NAME.txt   the framework and what it needs, with hashes, made from NAME.in
//
// scripts/framework-tools.sh installs these below dist. The tests are in clients/python/frameworks.
//
// Package frameworktest must never reach a model over the network.
//
// Start reading at framework_test.go.
package frameworktest
