// Package deploy tests what deploys Interlock: the Helm chart in helm/interlock, and the plain manifests in kubernetes,
// which the chart renders; and what a server that runs there pushes to a collector of OpenTelemetry, read with the
// collector's own decoder. It is a module of its own, because these programs are large.
//
//	go test .          checks the chart with the values in testdata/values
//	go test . -update  writes the manifests anew
//	go run ./gen       writes the dashboard anew
//
// No package imports it, and it must never need a cluster or the network.
//
// Start reading at chart_test.go.
package deploy
