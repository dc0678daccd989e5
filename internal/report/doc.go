// Package report sums up what happened in a time: one pure reducer over the journal's events, with the incidents
// (package incident) and the advice (package advice) of the same events. It is the one definition behind
// GET /v1/report and `interlock report`.
//
// Memory is bounded by MaxClasses and MaxKeys besides the bounds of those packages; what does not fit counts in the
// sums, and in no row.
//
// It uses no clock, does no I/O, and shows no id of a lease, session or ticket. Events of several namespaces must not
// be mixed. Start reading at report.go; text.go has its sentence.
package report
