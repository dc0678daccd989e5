package postgres_test

import (
	"fmt"

	"github.com/interlockdev/interlock/guard/postgres"
)

// Guard a table: afterwards a transaction that has not entered the fence of a row's key cannot
// change the row, and neither can one with a stale fence.
func ExampleAttach() {
	fmt.Print(postgres.Attach("account", "account:{id}", "default"))
	fmt.Println("BEGIN;")
	fmt.Println(postgres.Enter + "; -- namespace, key, fence")
	fmt.Println("UPDATE account SET balance = balance - 300 WHERE id = 12345;")
	fmt.Println("COMMIT;")
	// Output:
	// SELECT interlock.attach('account', 'account:{id}', 'default');
	// BEGIN;
	// SELECT interlock.enter($1, $2, $3); -- namespace, key, fence
	// UPDATE account SET balance = balance - 300 WHERE id = 12345;
	// COMMIT;
}
