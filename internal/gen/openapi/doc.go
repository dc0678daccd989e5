// Package openapi emits the schemas of server/openapi.json from the messages of package model.
//
// The paths of the document are written by hand. Below components.schemas the emitter replaces
// each schema that has the name of a message or a scalar, in its place, appends the missing ones,
// and leaves the others as they are.
//
// Package openapi must never change another part of the document.
//
// Start reading at openapi.go.
package openapi
