package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// panel is a panel of the dashboard. Its queries hold for the datasource of a Prometheus that scrapes Interlock.
type panel struct {
	title string
	unit  string // of Grafana: short, s, ops, bytes, percentunit
	why   string // what a person looks for, shown at the panel
	warn  float64
	exprs []query
}

// query is a line of a panel.
type query struct{ expr, legend string }

// row is a row of panels.
type row struct {
	title   string
	trouble bool    // its series are there only after something went wrong
	panels  []panel // three beside each other, more below
}

// quantile is that of a histogram's buckets, over all servers.
func quantile(q, buckets string) string {
	return fmt.Sprintf("histogram_quantile(%s, sum by (le) (rate(%s[$__rate_interval])))", q, buckets)
}

// rows is the dashboard.
var rows = []row{
	{title: "State", panels: []panel{
		{
			title: "Leases and waiters", unit: "short",
			why: "Waiters that grow while leases stay level mean a full key or a dead holder: interlock key hot.",
			exprs: []query{
				{`sum(interlock_leases)`, "leases"}, {`sum(interlock_waiters)`, "waiters"},
			},
		},
		{
			title: "Sessions and keys", unit: "short",
			why: "Sessions are live agents. A step down is an agent host that went away.",
			exprs: []query{
				{`sum(interlock_sessions)`, "sessions"}, {`sum(interlock_keys)`, "keys"},
			},
		},
		{
			title: "Servers", unit: "short",
			why: "1 is up. A step of the epoch is a new owner: a restart or a fail-over.",
			exprs: []query{
				{`up{job="$job"}`, "{{instance}} up"}, {`interlock_epoch`, "{{instance}} epoch"},
			},
		},
	}},
	{title: "Asking for leases", panels: []panel{
		{
			title: "Requests by their first answer", unit: "ops",
			why: "granted and queued are normal. A refusal's code is explained in docs/errors.md.",
			exprs: []query{
				{`sum by (outcome) (rate(interlock_acquires_total[$__rate_interval]))`, "{{outcome}}"},
			},
		},
		{
			title: "Waits until granted", unit: "s", warn: 5,
			why: "A p99 above 5 s is an alert: look for one hot key, or capacity that is too small.",
			exprs: []query{
				{quantile("0.5", `interlock_wait_seconds_bucket{outcome="granted"}`), "p50"},
				{quantile("0.95", `interlock_wait_seconds_bucket{outcome="granted"}`), "p95"},
				{quantile("0.99", `interlock_wait_seconds_bucket{outcome="granted"}`), "p99"},
			},
		},
		{
			title: "Holds", unit: "s",
			why: "How long agents think under a lease. A ttl below p99 ends leases of agents that live.",
			exprs: []query{
				{quantile("0.5", `interlock_hold_seconds_bucket`), "p50"},
				{quantile("0.95", `interlock_hold_seconds_bucket`), "p95"},
				{quantile("0.99", `interlock_hold_seconds_bucket`), "p99"},
			},
		},
	}},
	{title: "Trouble", trouble: true, panels: []panel{
		{
			title: "Leases that ended badly", unit: "ops",
			why: "ttl: an agent died or forgot to renew. max_hold and stall: it hangs. revoked: a person or a policy.",
			exprs: []query{
				{
					"sum by (outcome) " +
						`(rate(interlock_hold_seconds_count{outcome!~"released|question|session_closed"}[$__rate_interval]))`,
					"{{outcome}}",
				},
				{`sum(rate(interlock_expiries_total{tier="ended"}[$__rate_interval]))`, "expired"},
			},
		},
		{
			title: "Refused stale writes and deadlocks", unit: "short",
			why: "Each refused write would have destroyed data. A deadlock is agents that take keys in different orders.",
			exprs: []query{
				{`sum(increase(interlock_fence_refusals_total[$__rate_interval]))`, "refused fences"},
				{`sum(increase(interlock_deadlocks_total[1h]))`, "deadlocks in 1 h"},
			},
		},
		{
			title: "Refused calls", unit: "ops",
			why: "429: a quota. 503: overloaded, full, or not the owner.",
			exprs: []query{
				{
					`sum by (route, status) (rate(interlock_http_requests_total{status=~"429|503"}[$__rate_interval]))`,
					"{{status}} {{route}}",
				},
				{`sum(rate(interlock_in_flight_refused_total[$__rate_interval]))`, "too many bytes"},
			},
		},
	}},
	{title: "Documents and work", panels: []panel{
		{
			title: "Commits", unit: "ops",
			why: "stale: another agent was faster. If many are, a lease before the thinking wastes less.",
			exprs: []query{
				{`sum by (outcome) (rate(interlock_commits_total[$__rate_interval]))`, "{{outcome}}"},
			},
		},
		{
			title: "Tasks", unit: "ops",
			why: "failed attempts are tried again; dead ones need a person; asking ones wait for an approval.",
			exprs: []query{
				{`sum by (event) (rate(interlock_tasks_total[$__rate_interval]))`, "{{event}}"},
			},
		},
		{
			title: "Tasks in line", unit: "s",
			why: "How long a task waited for a worker.",
			exprs: []query{
				{quantile("0.95", `interlock_task_wait_seconds_bucket`), "p95"},
			},
		},
	}},
	{title: "Machine", panels: []panel{
		{
			title: "Journal", unit: "s", warn: 0.1,
			why: "Each answer waits for an append. Above 0.1 s the disk or the database is slow.",
			exprs: []query{
				{quantile("0.5", `interlock_journal_append_seconds_bucket`), "append p50"},
				{quantile("0.99", `interlock_journal_append_seconds_bucket`), "append p99"},
			},
		},
		{
			title: "Engine", unit: "s", warn: 0.25,
			why: "How long commands wait for the engine. Above 0.25 s it does not keep up.",
			exprs: []query{
				{quantile("0.99", `interlock_engine_lag_seconds_bucket`), "lag p99"},
			},
		},
		{
			title: "Snapshots", unit: "s",
			why: "How long the snapshots of the last hour took, beside the engine. It grows with the state.",
			exprs: []query{
				{
					"sum(increase(interlock_snapshot_seconds_sum[1h])) / sum(increase(interlock_snapshot_seconds_count[1h]))",
					"mean in 1 h",
				},
				{"histogram_quantile(0.99, sum by (le) (increase(interlock_snapshot_seconds_bucket[1h])))", "p99 in 1 h"},
			},
		},
		{
			title: "Memory", unit: "bytes",
			why: "Live memory without garbage: the state and the program.",
			exprs: []query{
				{`go_gc_heap_live_bytes{job="$job"}`, "{{instance}}"},
			},
		},
		{
			title: "Streams and the log", unit: "short",
			why: "Readers of events, open dashboards, and log lines that were dropped.",
			exprs: []query{
				{`sum(interlock_event_streams)`, "readers and viewers"},
				{`sum(interlock_overview_viewers)`, "viewers of the overview"},
				{`sum(increase(interlock_log_lines_dropped_total[$__rate_interval]))`, "log lines dropped"},
			},
		},
		{
			title: "Versions", unit: "short",
			why: "Servers by version and journal. Two versions are an upgrade that has not ended.",
			exprs: []query{
				{`sum by (version, journal) (interlock_build_info{job="$job"})`, "{{version}} {{journal}}"},
			},
		},
	}},
}

// DashboardFile is the committed dashboard, below the folder deploy. Command gen writes it.
const DashboardFile = "grafana/interlock.json"

// Dashboard returns the dashboard in the form of Grafana, schema version 39, without plugins. The variables are the
// datasource and the scrape job.
func Dashboard() ([]byte, error) {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	id, y := 0, 0
	next := func() int { id++; return id }
	for _, r := range rows {
		panels = append(panels, object{
			"id": next(), "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": 24, "h": 1},
		})
		y++
		for i, p := range r.panels {
			var targets []object
			for j, q := range p.exprs {
				targets = append(targets, object{
					"datasource": source, "expr": q.expr, "legendFormat": q.legend, "refId": string(rune('A' + j)),
				})
			}
			steps := []object{{"color": "green", "value": nil}}
			shown := "off"
			if p.warn > 0 {
				steps, shown = append(steps, object{"color": "red", "value": p.warn}), "line"
			}
			panels = append(panels, object{
				"id": next(), "type": "timeseries", "title": p.title, "description": p.why, "datasource": source,
				"targets": targets, "gridPos": object{"x": i % 3 * 8, "y": y + i/3*8, "w": 8, "h": 8},
				"fieldConfig": object{
					"defaults": object{
						"unit": p.unit, "min": 0, "thresholds": object{"mode": "absolute", "steps": steps},
						"custom": object{"fillOpacity": 10, "thresholdsStyle": object{"mode": shown}},
					},
					"overrides": []object{},
				},
				"options": object{
					"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"},
				},
			})
		}
		y += (len(r.panels) + 2) / 3 * 8
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(object{
		"uid": "interlock", "title": "Interlock", "tags": []string{"interlock"}, "schemaVersion": 39, "version": 1,
		"editable": true, "graphTooltip": 1, "refresh": "10s", "timezone": "utc",
		"time": object{"from": "now-1h", "to": "now"}, "panels": panels,
		"annotations": object{"list": []object{}}, "links": []object{},
		"templating": object{
			"list": []object{
				{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source", "hide": 0},
				{
					"name": "job", "type": "query", "label": "Job", "datasource": source,
					"query": "label_values(interlock_build_info, job)", "refresh": 1, "hide": 0,
					"current": object{"text": "interlock", "value": "interlock"},
				},
			},
		},
	})
	return b.Bytes(), err
}
