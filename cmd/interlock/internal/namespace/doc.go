// Package namespace is the command namespace: the settings and quotas of a namespace, and its
// deletion.
//
// It must never delete a namespace that still has something in it unless --force demands that.
//
// Start reading at namespace.go.
package namespace
