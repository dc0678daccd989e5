package postgres

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// Errors of the guard, as SQLSTATEs of a class of its own. None of them is cured by repeating
// the transaction.
const (
	// StaleFence: a higher fence was seen. The transaction is late: do not write; acquire the
	// key anew and read again.
	StaleFence = "IL001"
	// NoFence: the transaction writes a row without having entered its key.
	NoFence = "IL002"
	// Malformed: a key, a fence, a table's mapping or a transaction's isolation level
	// cannot be what it is.
	Malformed = "IL003"
)

// Schema installs the guard. It may be run again at any time, and by two at once.
//
//go:embed schema.sql
var Schema string

// Uninstall takes the guard out of a database, and refuses while a table is guarded.
//
//go:embed uninstall.sql
var Uninstall string

// Enter is the first statement of a transaction. Its parameters are the namespace, the key, and
// the fence of the exclusive lease on it.
const Enter = "SELECT interlock.enter($1, $2, $3)"

// Attach makes the SQL that guards a table. The table is spelled as SQL spells it;
// key and namespace may have columns of it in braces: account:{id}.
func Attach(table, key, namespace string) string {
	return fmt.Sprintf("SELECT interlock.attach(%s, %s, %s);\n", literal(table), literal(key), literal(namespace))
}

// Detach makes the SQL that takes all guards off a table.
func Detach(table string) string {
	return fmt.Sprintf("SELECT interlock.detach(%s);\n", literal(table))
}

// Tables lists the guarded tables, each with its key. The third column names a table
// that inherits from it and is not guarded, and is null where there is none.
const Tables = "SELECT guarded, key, open FROM interlock.tables();\n"

// Prune returns the SQL that forgets fences of keys that were not entered for some time,
// in whole seconds, at most 100,000 of them, and returns their number. A fence below one
// that is forgotten stays refused.
func Prune(idle time.Duration) string {
	return fmt.Sprintf("SELECT interlock.prune('%d seconds');\n", int64(idle/time.Second))
}

// literal quotes text so that it is right with any value of standard_conforming_strings.
func literal(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(quoted, `\`) {
		quoted = "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}
