// Package web is the dashboard: pages for people, built into the binary.
//
// The sources are in app, and vendor has the packages that they import: Preact, signals and dagre, as published, listed
// in vendor/LOCK. The module build bundles both into dist, which is committed, so that neither Node nor a network is
// needed; its check compares dist with the sources byte for byte. Edit app, then run
//
//	go -C web/build run .
//
// Invariants:
//   - The pages use the public HTTP API and nothing else. A user can call all that they call.
//   - They show texts of agents, so all text becomes text nodes: no markup is ever made from strings. Trusted Types
//     make a mistake an exception, and the policy allows no inline script or style.
//   - Every view is a URL, and has a link to its JSON.
//
// Handler serves the files. Start reading at app/main.jsx, and at app/api.js for how the pages stay up to date.
package web
