// Command suite reads the output of "go test -json" and summarises it.
//
//	go test -json ./... | go run ./internal/test/suite unit
//
// While the tests run it prints one line per package. At the end it prints how long
// the run took and the output of the tests that failed, last of all, where a reader
// looks first, and then, alone on a line, how many there were:
//
//	unit: 512 passed, 0 failed
//
// A test is a leaf: a test with subtests is not counted beside them. A test that
// was skipped did not show anything, so it counts as failed, unless the run was
// asked to be short (-short); fuzz targets may pass over an input. A package that
// fails without a failing test (it did not compile, it panicked, it ran out of time)
// counts as one failure.
//
// A test may say what it did by attributes: t.Attr("count.seeds", "400"). They are
// added up, printed above the failures, and written into the file that -o names.
//
// Command suite must never turn a failure into success: no test at all, input
// that is cut off and a test that never ended are failures too.
//
// Start reading at report.go.
package main
