// Package etcdtest tests package etcdjournal, and what the server makes of it, against
// a real cluster of three members, which it starts and stops itself: on free ports of
// loopback, with data in temporary directories.
//
// It is a module of its own, because it links etcd's server: users of Interlock must never
// download that. It must never be imported.
//
// Start reading at cluster_test.go.
package etcdtest
