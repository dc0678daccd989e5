// Command gen writes the dashboard for Grafana from its table in package deploy. It runs in the folder deploy:
//
//	go -C deploy run ./gen          writes grafana/interlock.json
//	go -C deploy run ./gen -check   writes nothing, and fails if the file is not what the table makes
//
// "make generate" and "make fresh" run it. It must never import what only the tests of deploy need, because that takes
// minutes to build.
//
// Start reading at main.go.
package main
