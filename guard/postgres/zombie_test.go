package postgres_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlockdev/interlock/guard/postgres"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// Two holders are paused while they think. The lease of one expires, that of the
// other is revoked. Both wake up when a third one holds the key, and write what they
// had decided: the database refuses them, whichever way they try, and not the third.
func TestZombies(t *testing.T) {
	const key = "account:12345"
	door := "http://" + launchtest.Start(t, launch.Config{DataDir: t.TempDir()}).HTTP
	dsn := postgrestest.Start(t).Database(t)
	owner := connect(t, dsn)
	must(t, owner, postgres.Schema)
	must(
		t, owner, "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint); INSERT INTO account VALUES (12345, 1000)",
	)
	must(t, owner, postgres.Attach("account", "account:{id}", "default"))

	agents := map[string]*agent{}
	acquire := func(name string) *agent {
		a := &agent{conn: connect(t, dsn), key: key}
		answer := post(t, door+"/v1/leases", fmt.Sprintf(
			`{"agent": %q, "claims": [{"key": %q, "mode": "exclusive"}], "ttl_ms": 1000, "grace_ms": 1, "wait_ms": 30000}`,
			name, key,
		))
		fence, err := strconv.ParseInt(answer.Lease.Fence, 10, 64)
		if err != nil {
			t.Fatalf("%s: fence %q: %v", name, answer.Lease.Fence, err)
		}
		a.fence = fence
		// Each decides on its own read. The transaction is over before it thinks, so nothing in
		// the database is held meanwhile.
		if err := a.transact(t, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "SELECT balance FROM account WHERE id = 12345").Scan(&a.balance)
		}); err != nil {
			t.Fatalf("%s reads: %v", name, err)
		}
		agents[name] = a
		return a
	}

	acquire("expired")            // and is silent from here on
	revoked := acquire("revoked") // gets the key when the first lease has expired
	post(t, door+"/v1/revocations", fmt.Sprintf(`{"key": %q, "fence": "%d", "reason": "a test"}`, key, revoked.fence))
	holder := acquire("holder")
	if err := holder.charge(t, 35); err != nil {
		t.Fatalf("the holder is refused: %v", err)
	}

	for _, name := range []string{"expired", "revoked"} {
		zombie := agents[name]
		if err := zombie.charge(t, 500); state(err) != postgres.StaleFence {
			t.Errorf("%s: charging under the fence gives %v, want %s", name, err, postgres.StaleFence)
		}
		if _, err := zombie.conn.Exec(t.Context(), "UPDATE account SET balance = 0"); state(err) != postgres.NoFence {
			t.Errorf("%s: charging without a fence gives %v, want %s", name, err, postgres.NoFence)
		}
	}
	holder.balance = 965
	if err := holder.charge(t, 65); err != nil {
		t.Errorf("the holder is refused after the zombies: %v", err)
	}
	var balance int64
	if err := owner.QueryRow(t.Context(), "SELECT balance FROM account").Scan(&balance); err != nil || balance != 900 {
		t.Errorf("the balance is %d (%v), want 900: 1000 less what the holder charged", balance, err)
	}
}

// agent has acquired a key, read, and decides on what it read.
type agent struct {
	conn    *pgx.Conn
	key     string
	fence   int64
	balance int64
}

// charge writes what follows from the balance that was read, as an agent does.
func (a *agent) charge(t *testing.T, amount int64) error {
	return a.transact(t, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE account SET balance = $1 WHERE id = 12345", a.balance-amount)
		return err
	})
}

// transact does something in a transaction that has entered the key.
func (a *agent) transact(t *testing.T, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(t.Context(), a.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), postgres.Enter, "default", a.key, a.fence); err != nil {
			return err
		}
		return do(tx)
	})
}

type answer struct {
	Outcome string
	Lease   struct{ Fence string }
	Session struct{ ID string }
}

func post(t *testing.T, url, body string) (a answer) {
	t.Helper()
	resp, err := http.Post(url, "application/json", bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: status %d, %v", url, resp.StatusCode, err)
	}
	return a
}
