package pgjournal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// Codes of PostgreSQL.
const (
	stateNoTable   = "42P01"
	stateIsTable   = "42P07" // two servers make the tables at once
	stateForbidden = "42501"
	stateFull      = "53100"
	stateReadOnly  = "25006" // a statement that writes, at a standby
	stateShutdown  = "57P"   // the beginning of several
)

// sqlState returns the code of an answer; ok is false if there was none.
func sqlState(err error) (state string, ok bool) {
	if refusal, found := errors.AsType[*pgconn.PgError](err); found {
		return refusal.Code, true
	}
	return "", false
}

func noTable(err error) bool {
	state, _ := sqlState(err)
	return state == stateNoTable
}

// elsewhere reports that a server answered which is not the primary, or will not be for long.
func elsewhere(err error) bool {
	state, _ := sqlState(err)
	return state == stateReadOnly || strings.HasPrefix(state, stateShutdown)
}

// decided lists the beginnings of codes that the same request would get again: data, access,
// unknown databases, and statements. All others pass, such as a server that shuts down, takes
// no more connections, or is a standby.
var decided = []string{"22", "23514", "28", "3D", "3F", "42"}

// explain tells remote what an error of PostgreSQL means.
func explain(err error) error {
	if err == nil {
		return nil
	}
	state, _ := sqlState(err)
	if state == stateFull {
		return fmt.Errorf("%w: postgres: %w", journal.ErrNoSpace, err)
	}
	err = fmt.Errorf("postgres: %w", err)
	for _, beginning := range decided {
		if state != "" && state != stateIsTable && strings.HasPrefix(state, beginning) {
			return remote.Final(err)
		}
	}
	return err
}
