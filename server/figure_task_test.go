package server

import "testing"

func TestTasksAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		for range 4 {
			d.submit(`,"max_attempts":1`)
		}
		d.post("/v1/leases/"+d.pull()+"/ack", ``).want(200)
		d.post("/v1/leases/"+d.pull()+"/nack", ``).want(200)
		d.post("/v1/leases/"+d.pull()+"/ack", `{"tasks":[{"queue":"fees"}]}`).want(200)
		d.post("/v1/tasks/"+d.get("/v1/tasks?state=waiting").str("tasks.0.id")+"/cancel", ``).want(200)
		for name, want := range map[string]string{
			`interlock_tasks_total{event="submitted"}`:  "5",
			`interlock_tasks_total{event="handed_out"}`: "3",
			`interlock_tasks_total{event="failed"}`:     "1",
			`interlock_tasks_total{event="asking"}`:     "0",
			`interlock_tasks_total{event="done"}`:       "2",
			`interlock_tasks_total{event="dead"}`:       "1",
			`interlock_tasks_total{event="cancelled"}`:  "1",
			`interlock_task_wait_seconds_count`:         "3",
		} {
			if got := d.figure(name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	})
}
