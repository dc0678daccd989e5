// Package report is the command report: what happened in a time, as text, JSON or one HTML file.
//
// It computes nothing: the sums, the incidents and the advice are those of GET /v1/report, and the waits at the moment
// of an incident those of GET /v1/at.
//
// Start reading at report.go; page.go and page.html are the HTML file.
package report
