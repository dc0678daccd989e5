package redisjournal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// Codes with which answers begin.
const (
	codeFull     = "OOM"
	codeMoved    = "MOVED"
	codeNoScript = "NOSCRIPT"
)

// code is the first word of a refusal.
func (r refusal) code() string {
	code, _, _ := strings.Cut(string(r), " ")
	return code
}

// passing lists the codes of refusals that end by themselves, or at another server: one that starts,
// is a replica, waits for replicas, runs a script, or changes its part in a cluster.
var passing = []string{
	"LOADING", "READONLY", "MASTERDOWN", "NOREPLICAS", "UNBLOCKED", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "ASK", codeMoved,
	"MISCONF", codeNoScript,
}

// explain tells remote what a refusal means. Any code that it does not know is one of data, access or commands, which
// the same request would get again.
func explain(r refusal) error {
	err := fmt.Errorf("redis: %w", r)
	switch {
	case r.code() == codeFull, strings.Contains(string(r), "No space left on device"):
		return fmt.Errorf("%w: %w", journal.ErrNoSpace, err)
	case strings.HasPrefix(string(r), "ERR max number of clients"), slices.Contains(passing, r.code()):
		return err
	}
	return remote.Final(err)
}

// elsewhere reports that the server which answered is not the primary, or will not be for long.
func elsewhere(r refusal) bool {
	return slices.Contains([]string{"READONLY", "MASTERDOWN", "LOADING", "UNBLOCKED", "CLUSTERDOWN"}, r.code())
}

// errReplica: a host is no primary.
var errReplica = errors.New("redis: the server is a replica, and the primary is wanted")
