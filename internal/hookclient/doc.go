// Package hookclient has what both senders of a coding agent's events share, interlock-hook and
// `interlock hooks relay`: the path of the request, and the end of a run without an answer. It
// has the form of a skip, too, which `interlock hooks skip` sends and the server reads.
//
// It must never refuse an agent's tool because of a failure unless the mode is strict, and, as a part
// of a small binary, import no network or command line library.
//
// Start reading at failure.go.
package hookclient
