// Command suite runs the suites of tests of this repository, and reports them.
//
//	bin/suite unit examples      # runs suites of the table, side by side where processors are free
//	bin/suite list               # prints all suites
//	bin/suite times              # prints how long each suite took, beside earlier commits
//	bin/suite slow               # prints the slowest tests of the last runs
//	bin/suite shake              # repeats all tests under load, and lists those that failed once
//	go test -json ./engine | bin/suite -stdin changed
//
// A suite is a row of table.go: what it installs, which commands it runs, and how many processors it keeps
// busy. While tests run, the command prints one line per package, and the first failures at once, each with the
// command that repeats it alone. At the end it prints the failures again and, as the last line of each suite, the
// number of tests that passed and failed. The number counts the leaves: a test with subtests is not counted itself.
// A skipped test counts as failed, because it has shown nothing, unless the run was asked to be short; fuzz targets
// may pass over an input. A package that fails without a failing test (it did not compile, it panicked, it ran out
// of time) counts as one failure.
//
// A test that fails is repeated alone, twice. If it passes both times it is unstable: the run goes on, keeps the
// output in dist/unstable, and lists the test in its last lines. More than two unstable tests fail the run. A report
// of the race detector, a failed search (fuzz targets, simulated worlds, random runs against a model, histories) and
// what does not compile are never repeated: one failure is a proof.
//
// A test may state what it did by attributes: t.Attr("count.seeds", "400"). They are added up, printed above the
// failures, and written into the record of the suite, dist/suites/NAME.json.
//
// Command suite must never turn a failure into success: no test at all, input that is cut off and a test that never
// ended are failures too.
//
// Start reading at table.go.
package main
