// Package frameworktest tests the client for Python with agent frameworks, each in a venv of its own and with a fake
// model. For the extras of the client the cases are: a free key, a held key, a tool that raises, a cancelled run, and
// two agents that race for one key. The examples of docs/frameworks.md run, and print what the page has.
//
//	testdata/NAME.txt    the framework and what it needs, with hashes, made from NAME.in
//	testdata/NAME.build  what builds the packages that are not taken as wheels
//
// Of CrewAI the requirements have only those that its agents import, 62 of 137. The Claude Agent SDK is built from its
// source: its wheel has a copy of Claude Code of 360 MB, which the tools of the SDK do not need.
//
// scripts/framework-tools.sh installs these below dist. The tests are in clients/python/frameworks.
//
// Package frameworktest must never reach a model over the network.
//
// Start reading at framework_test.go.
package frameworktest
