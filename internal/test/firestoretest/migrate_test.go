package firestoretest

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/redisserver"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal/oncejournal"
	"github.com/interlockdev/interlock/journal/pgjournal"
	"github.com/interlockdev/interlock/journal/redisjournal"
	"github.com/interlockdev/interlock/journal/remote"
)

// From PostgreSQL over Valkey and Firestore back to PostgreSQL.
func TestMigrateAcross(t *testing.T) {
	database := postgrestest.Start(t, "-c", "fsync=on").URL(t)
	postgres := func(name string) remotetest.Place {
		url := database + "&journal=" + name
		at, err := pgjournal.ParsePlace(url)
		if err != nil {
			t.Fatal(err)
		}
		return remotetest.Place{URL: url, Connect: func() (*remote.Store, error) { return pgjournal.Connect(at) }}
	}
	valkey := redisserver.Start(t, redisserver.Valkey, redisserver.Durable...).URL("moved")
	inValkey, err := redisjournal.ParsePlace(valkey)
	if err != nil {
		t.Fatal(err)
	}
	firestore := begin(t).URL("moved")
	inFirestore, err := oncejournal.ParseFirestore(firestore)
	if err != nil {
		t.Fatal(err)
	}
	remotetest.MigrateAcross(
		t, postgres("first"),
		remotetest.Place{URL: valkey, Connect: func() (*remote.Store, error) { return redisjournal.Connect(inValkey) }},
		remotetest.Place{
			URL: firestore, Connect: func() (*remote.Store, error) { return oncejournal.ConnectFirestore(inFirestore) },
		},
		postgres("last"),
	)
}
