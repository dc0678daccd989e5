package sqlite_test

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock/guard/sqlite"
)

// Guard a table: each transaction that changes a row enters the fence of its key first, and
// leaves at its end.
func ExampleAttach() {
	sql, err := sqlite.Attach("account", "account:{id}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Count(sql, "CREATE TRIGGER"), "triggers")
	for _, step := range []string{
		sqlite.Connect, // once for each connection
		"BEGIN IMMEDIATE",
		sqlite.Enter, // with the key and the fence
		"UPDATE account SET balance = balance - 300 WHERE id = 12345",
		sqlite.Leave,
		"COMMIT",
	} {
		fmt.Println(step)
	}
	// Output:
	// 3 triggers
	// PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON
	// BEGIN IMMEDIATE
	// INSERT INTO interlock_entered VALUES (?, ?)
	// UPDATE account SET balance = balance - 300 WHERE id = 12345
	// DELETE FROM interlock_entered
	// COMMIT
}
