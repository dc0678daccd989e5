// Package openapi emits the schemas of server/openapi.json from the messages of package model.
//
// The paths of the document are written by hand. What is below components.schemas is written by the
// emitter: a schema for each scalar and each message.
//
// Package openapi must never change another part of the document.
//
// Start reading at openapi.go.
package openapi
