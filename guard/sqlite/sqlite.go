package sqlite

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Schema installs the guard. It may be run again at any time, also over the tables of
// an older version.
//
//go:embed schema.sql
var Schema string

// Uninstall removes the guard from a file, and fails while a table is guarded.
//
//go:embed uninstall.sql
var Uninstall string

// Connect is the SQL that every connection begins with. The guard refuses to enter a
// key in a connection that has not run it.
const Connect = "PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON"

// Enter is the first statement of a transaction. Its parameters are the key and the
// fence of the exclusive lease on it.
const Enter = "INSERT INTO interlock_entered VALUES (?, ?)"

// Leave is the last statement of a transaction.
const Leave = "DELETE FROM interlock_entered"

// prefix begins the names of all that the guard creates.
const prefix = "interlock_"

// events are the operations that the triggers of a guarded table check, and the rows that each
// sees.
var events = []struct {
	event string
	rows  []string
}{
	{"INSERT", []string{"NEW"}},
	{"UPDATE", []string{"OLD", "NEW"}},
	{"DELETE", []string{"OLD"}},
}

// Attach returns the SQL that guards a table. The table is a bare name. The key is the
// key of a row, with its columns in braces: {column} for one segment, {column...} for
// several. A table has one key: to attach it again changes the key.
//
// It returns an error when the name or the key cannot be what they are for. Whether the
// table and its columns exist is found out by the SQL.
func Attach(table, key string) (string, error) {
	if err := checkTable(table); err != nil {
		return "", err
	}
	columns, _, err := spell(key, "NEW")
	if err != nil {
		return "", err
	}
	var sql strings.Builder
	fmt.Fprintf(
		&sql, "BEGIN IMMEDIATE;\nSELECT key FROM interlock_entered LIMIT 0; -- fails where the guard is not installed\n",
	)
	for _, column := range columns {
		fmt.Fprintf(
			&sql, "SELECT %[1]s.%[2]s FROM %[1]s LIMIT 0; -- fails where there is no such column\n", identifier(table),
			identifier(column),
		)
	}
	for _, e := range events {
		var missing []string
		for _, row := range e.rows {
			_, expression, err := spell(key, row)
			if err != nil {
				return "", err
			}
			missing = append(missing, "NOT EXISTS (SELECT 1 FROM interlock_entered WHERE key = "+expression+")")
		}
		name := trigger(e.event, table)
		fmt.Fprintf(&sql, "DROP TRIGGER IF EXISTS %s;\nCREATE TRIGGER %s AFTER %s ON %s\nWHEN %s BEGIN\n\tSELECT "+
			"RAISE(ABORT, %s);\nEND;\n",
			name, name, e.event, identifier(table), strings.Join(missing, "\n  OR "),
			literal("interlock: no fence was entered for this row's key, "+key+
				": do not write; acquire the key, enter it in interlock_entered, and read again"))
	}
	sql.WriteString("COMMIT;\n")
	return sql.String(), nil
}

// Detach returns the SQL that removes the guard from a table. Its last statement
// returns the names of triggers that are left: those that were attached while the
// table had another name.
func Detach(table string) (string, error) {
	if err := checkTable(table); err != nil {
		return "", err
	}
	var sql strings.Builder
	sql.WriteString("BEGIN IMMEDIATE;\n")
	for _, e := range events {
		fmt.Fprintf(&sql, "DROP TRIGGER IF EXISTS %s;\n", trigger(e.event, table))
	}
	fmt.Fprintf(&sql, "COMMIT;\nSELECT name FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = lower(%s)"+
		" AND name LIKE 'interlock\\_guard\\_%%' ESCAPE '\\';\n", literal(table))
	return sql.String(), nil
}

// Prune returns the SQL that forgets the fences of keys that were not entered for some
// time, in whole seconds, and returns their number. It raises the floor to the highest
// of them, so that a fence below one that is forgotten stays refused; a lease that is
// older than that time, and has not entered its key within it, has to be acquired anew.
//
// A fence above all that were entered since is not forgotten: it was a mistake, and
// as a floor it would refuse every lease.
func Prune(idle time.Duration) string {
	cutoff := fmt.Sprintf("CAST(strftime('%%s', 'now') AS INTEGER) - %d", int64(idle/time.Second))
	return fmt.Sprintf(`BEGIN IMMEDIATE;
UPDATE interlock_floor SET floor = max(floor, coalesce((
	SELECT max(highest) FROM interlock_fences WHERE entered_at < %[1]s
	AND highest <= (SELECT max(highest) FROM interlock_fences WHERE entered_at >= %[1]s)), 0));
DELETE FROM interlock_fences WHERE entered_at < %[1]s AND highest <= (SELECT floor FROM interlock_floor);
SELECT changes();
COMMIT;
`, cutoff)
}

func checkTable(table string) error {
	switch {
	case table == "" || strings.ContainsRune(table, 0):
		return errors.New("the table's name is missing")
	case strings.HasPrefix(strings.ToLower(table), prefix):
		return fmt.Errorf("%s belongs to the guard", table)
	}
	return nil
}

// trigger returns the name of a guarded table's trigger, quoted.
func trigger(event, table string) string {
	return identifier(prefix + "guard_" + strings.ToLower(event) + "_" + table)
}

// spell returns the columns of a key and the SQL that spells the key for a row. A
// column that cannot be a segment makes it null, which equals nothing that was entered.
func spell(key, row string) (columns []string, expression string, err error) {
	malformed := fmt.Errorf("%q is not text with columns in braces, such as account:{id}", key)
	if key == "" || strings.ContainsRune(key, 0) {
		return nil, "", malformed
	}
	var parts []string
	for rest := key; rest != ""; {
		text, after, found := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, "", malformed
		}
		if text != "" {
			parts = append(parts, literal(text))
		}
		if !found {
			break
		}
		inside, next, closed := strings.Cut(after, "}")
		column, several := strings.CutSuffix(inside, "...")
		if !closed || column == "" || strings.Contains(column, "{") {
			return nil, "", malformed
		}
		columns = append(columns, column)
		value := "CAST(" + row + "." + identifier(column) + " AS TEXT)"
		segment := "nullif(" + value + ", '')"
		if !several {
			segment = "CASE WHEN instr(" + value + ", '/') = 0 THEN " + segment + " END"
		}
		parts = append(parts, segment)
		rest = next
	}
	return columns, strings.Join(parts, " || "), nil
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
