package api

import "github.com/interlockdev/interlock"

// ServerStatus is the answer of GET /v1/status.
type ServerStatus struct {
	Role string `json:"role" enum:"active"`
	// The version, as in openapi.json.
	Version string `json:"version" text:"line"`
	Started Time   `json:"started"`
	// The time since the start.
	Up        Milliseconds    `json:"up_ms"`
	Namespace NamespaceStatus `json:"namespace"`
	// Of the whole server. Only for the roles server and metrics; without credentials for every
	// caller.
	Server *ServerCounts `json:"server,omitempty"`
	// Warnings for the operator, the most urgent first: a name, a colon, and a sentence.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Stamp
}

// NamespaceStatus is the sizes of a namespace.
type NamespaceStatus struct {
	Namespace string `json:"name" text:"line"`
	// Keys that are held, waited for or have notes.
	Keys int `json:"keys" min:"0"`
	// Leases that are held now.
	Leases int `json:"leases" min:"0"`
	// Requests in line.
	Waiters   int `json:"waiters" min:"0"`
	Sessions  int `json:"sessions" min:"0"`
	Documents int `json:"documents" min:"0"`
	// The bytes of all documents.
	StateBytes int `json:"state_bytes" min:"0" unit:"bytes"`
	// Tasks that are not settled.
	Tasks int `json:"tasks" min:"0"`
	// Tasks that are not tried again by themselves.
	DeadLetters int `json:"dead_letters" min:"0"`
	// Tasks and parked leases with an open question to a person.
	Approvals int `json:"approvals" min:"0"`
}

// ServerCounts is the sizes of a server.
type ServerCounts struct {
	Namespaces int `json:"namespaces" min:"0"`
	// Of all namespaces, as the others.
	Keys     int           `json:"keys" min:"0"`
	Leases   int           `json:"leases" min:"0"`
	Waiters  int           `json:"waiters" min:"0"`
	Sessions int           `json:"sessions" min:"0"`
	Journal  JournalStatus `json:"journal"`
}

// JournalStatus is the state of a server's journal.
type JournalStatus struct {
	// The backend: a directory, memory, or an engine; left out if unknown.
	Kind string `json:"kind,omitempty" enum:"file,etcd,postgres,firestore,s3,redis,memory"`
	// The oldest entry that is kept.
	First interlock.Index `json:"first,string"`
	// The newest durable entry.
	Index interlock.Index `json:"index,string"`
	// Up to which the newest snapshot goes; 0 for none since the start.
	Snapshot interlock.Index `json:"snapshot,string"`
	// Its size on disk; left out if unknown.
	Bytes int `json:"bytes,omitempty" min:"0" unit:"bytes"`
	// The free space of that disk; left out if unknown.
	FreeBytes int `json:"free_bytes,omitempty" min:"0" unit:"bytes"`
}
