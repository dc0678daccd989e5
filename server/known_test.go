package server

import (
	"testing"
	"time"
)

// A client that has lost one of its leases loses no other one, and the next waiter gets that key after the ttl.
func TestKnownLeases(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("worker")
		acquire := func(key string) *reply {
			return d.post("/v1/leases", `{"session":"`+s+`","grace_ms":0,"claims":[{"key":"`+key+`"}]}`).want(200)
		}
		lost, kept := acquire("lost"), acquire("kept")
		id := kept.str("lease.id")
		beat := func(known string) *reply {
			return d.post("/v1/sessions/"+s+"/heartbeat", `{"known":`+known+`}`).want(200)
		}
		counted := `{"count":1,"digest":"` + id[2:] + `"}`
		if got := beat(counted); got.at("wants_list") != true {
			t.Errorf("no list is wanted: %s", got.raw)
		}
		told := beat(`{"leases":["`+id+`"]}`).is("warnings.0.lease.id", lost.str("lease.id")).is("warnings.0.lease.state", "held")
		told.says("warnings.0.advice.message", "lost")
		for range 3 {
			pass(10 * time.Second)
			if got := beat(counted); got.at("wants_list") != nil {
				t.Errorf("the list is wanted again: %s", got.raw)
			}
		}
		pass(time.Second)
		d.get("/v1/leases/"+lost.str("lease.id")).want(410, "expired").is("ended_by", "forgotten").says("detail", "knew of it")
		d.get("/v1/leases/"+id).want(200).is("lease.state", "held")

		for body, field := range map[string]string{
			`{"leases":[],"count":0}`:         "known",
			`{"digest":"12"}`:                 "known.digest",
			`{"leases":["t_12"]}`:             "id of a lease",
			`{"count":1000000,"digest":null}`: "known.count",
		} {
			d.post("/v1/sessions/"+s+"/heartbeat", `{"known":`+body+`}`).want(400).says("detail", field)
		}
	})
}
