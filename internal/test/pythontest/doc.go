// Package pythontest checks and tests the client for Python, in clients/python: its types with mypy and pyright, also
// as the wheel has them, its source with ruff, and its tests with pytest on every supported interpreter of this
// machine.
//
//	testdata/requirements.txt   mypy, ruff and hatchling with their hashes, made from requirements.in
//	testdata/pytest.txt         pytest as pure Python, made from pytest.in
//	testdata/package-lock.json  pyright, which is a package of npm
//
// scripts/python-tools.sh installs these below dist. Each test of pytest is a test of Go with the same name, so that
// the count of a suite has it.
//
// Package pythontest must never pass when no interpreter ran the tests.
//
// Start reading at python_test.go.
package pythontest
