// Package jsonname refuses a name that stands twice in an object of JSON: encoding/json takes the last one, and another
// reader of the same text may take the first.
//
// It must never change or keep a value.
//
// Start reading at jsonname.go.
package jsonname
