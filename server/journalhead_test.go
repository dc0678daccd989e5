package server

import (
	"testing"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/chain"
)

// The head is the operator's, goes with every entry, and is what the journal leads to.
func TestJournalHead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		agentSecret, agentLine := newSecret(t, "agent", "acme")
		operatorSecret, operatorLine := newSecret(t, "ops", "acme")
		credentials := credentialsFile(t, agentLine, operatorLine+" operator")
		d := newDoor(t, func(c *Config) { c.Credentials = credentials })
		agent, operator := []string{
			"Authorization", "Bearer " + agentSecret,
		}, []string{"Authorization", "Bearer " + operatorSecret}
		d.get("/v1/journal/head").want(401, "unauthenticated")
		d.get("/v1/journal/head", agent...).want(403, "forbidden")
		var heads []chain.Head
		for _, key := range []string{"a", "b", "c"} {
			index := d.post("/v1/leases", `{"claims":[{"key":"`+key+`"}]}`, agent...).want(200).str("at.index")
			got := d.get("/v1/journal/head", operator...).want(200).is("at.index", index)
			head, err := chain.Parse(got.str("head"))
			if err != nil || head.Index.String() != index {
				t.Fatalf("head %s after an answer at %s: %v", got.str("head"), index, err)
			}
			heads = append(heads, head)
		}
		j, err := d.store.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := chain.NewVerifier(chain.Record{}, heads)
		if err := j.Read(t.Context(), 1, func(e journal.Entry) error {
			v.Add(e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if proof, err := v.End(); err != nil || len(proof.Confirmed) != len(heads) {
			t.Errorf("%d of %d heads were confirmed: %v", len(proof.Confirmed), len(heads), err)
		}
		d.get("/v1/journal/head", operator...).want(503, "not_owner")
	})
}
