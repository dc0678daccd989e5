package api

// KeyPattern is a pattern with its name and the settings that PUT takes. Unset ones are left out.
//
//schema:required preempt,park,on_deadlock,write
type KeyPattern struct {
	// Its name.
	Name string `json:"name" text:"line"`
	PatternRequest
}

// Pattern is the answer of GET /v1/patterns/{name}.
type Pattern struct {
	KeyPattern
	Stamp
}

// NamespaceSettings are the settings of a namespace.
//
//schema:required strict_order,closed,near_misses,quota,principal_quota
type NamespaceSettings struct {
	SettingsRequest
}

// Settings is the answer of GET /v1/namespace.
type Settings struct {
	NamespaceSettings
	Stamp
}

// QueueSettings are the settings of a queue. Unset ones are left out.
//
//schema:required paused,drain
type QueueSettings struct {
	Name string `json:"name"`
	QueueRequest
}

// QueueStatus is a queue with its tasks.
type QueueStatus struct {
	QueueSettings
	// The numbers of tasks by state.
	Tasks QueueTasks `json:"tasks"`
	// Workers that ask for tasks.
	Idle int `json:"idle_workers" min:"0"`
	// How long the first has waited.
	Oldest Milliseconds `json:"oldest_ms,omitempty"`
}

// QueueTasks counts the tasks of a queue by their states.
type QueueTasks struct {
	Scheduled int `json:"scheduled" min:"0"`
	Waiting   int `json:"waiting" min:"0"`
	Running   int `json:"running" min:"0"`
	Asking    int `json:"asking" min:"0"`
	Dead      int `json:"dead" min:"0"`
}
