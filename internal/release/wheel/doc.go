// Package wheel builds the wheel and the source distribution of the client for Python, as pip installs them.
//
// It copies clients/python, writes the version into it, and has hatchling build it, which scripts/python-tools.sh
// installs. The bytes depend on the sources, hatchling, the version and the time that it is asked for alone.
//
// Package wheel must never build from a folder with more in it than the sources.
//
// Start reading at wheel.go.
package wheel
