package server

import "testing"

func TestCommitsAndEffectsAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.post("/v1/commits", `{"writes":[{"key":"a","put":1},{"key":"b","add":1},{"key":"c","put":2}]}`).want(200)
		d.delete("/v1/state/c", "If-Match", "*").want(200)
		d.post("/v1/commits", `{"reads":[{"key":"a","absent":true}],"writes":[{"key":"a","put":1}]}`).want(412)
		d.post("/v1/commits", `{"writes":[{"key":"b","add":1,"max":1}]}`).want(409)
		for _, how := range []string{"done", "unknown", "cancel"} {
			id := d.post("/v1/effects", `{"tool":"mail","target":"`+how+`"}`).want(200).str("effect.id")
			d.post("/v1/effects/"+id+"/"+how, "").want(200)
		}
		d.post("/v1/effects", `{"tool":"mail","target":"done"}`).want(200).is("outcome", "done")
		for name, want := range map[string]string{
			`interlock_commits_total{outcome="committed"}`:     "2",
			`interlock_commits_total{outcome="stale"}`:         "1",
			`interlock_commits_total{outcome="out_of_bounds"}`: "1",
			`interlock_documents_written_total{op="put"}`:      "2",
			`interlock_documents_written_total{op="add"}`:      "1",
			`interlock_documents_written_total{op="delete"}`:   "1",
			`interlock_documents_written_total{op="merge"}`:    "0",
			`interlock_effects_total{state="claimed"}`:         "3",
			`interlock_effects_total{state="done"}`:            "1",
			`interlock_effects_total{state="unknown"}`:         "1",
			`interlock_effects_total{state="free"}`:            "1",
		} {
			if got := d.figure(name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	})
}
