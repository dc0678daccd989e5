// Command reliability adds up the records of the suites, and derives bounds from them.
//
//	go run ./internal/test/reliability dist/suites/*.json
//	go run ./internal/test/reliability -night dist/night/*.json  # adds a round of "make night"
//	go run ./internal/test/reliability -check                    # fails if the records are old
//
// Each suite leaves a record of its tests (see internal/test/suite), and the deliberate mistakes one
// of their last run. The command adds them up into reliability.json, with the machine and the
// commit, and writes the table of docs/guarantees.md that quotes it. A test of this package
// holds the two equal.
//
// It must never write down a figure that no suite has counted, nor one of a suite that
// failed.
//
// Start reading at record.go.
package main
