// Package traffic is the clients of a history: they take leases, write documents and do
// tasks over HTTP, all at once, repeat what was not answered under the same request id, and
// record every operation.
//
//	Site       where the servers are at this moment
//	Client     one operation after the other, each until it is answered or given up
//	Crowd      agents of all kinds, which work until they are stopped
//	Proxy      cuts and doubles connections
//
// Package traffic must never decide whether an answer is right: package history does. But
// a refusal that nothing in its work can lead to is an error at once.
//
// Start reading at client.go, then crowd.go.
package traffic
