// Package deploy tests what deploys Interlock: the Helm chart in helm/interlock, and the plain manifests in kubernetes,
// which the chart renders. It is a module of its own, because Helm and the types of Kubernetes are large.
//
//	go test .          checks the chart with the values in testdata/values
//	go test . -update  writes the manifests anew
//
// No package imports it, and it must never need a cluster or the network.
//
// Start reading at chart_test.go.
package deploy
