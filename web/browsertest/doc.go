// Package browsertest runs the dashboard in a real browser, Debian's Chromium, against a real server.
//
// It is a module of its own, so that the driver of the browser is no dependency of the server. Each test starts a
// server with two tenants and a scene of agents; a page passes only without console errors, without violations of the
// Content-Security-Policy, and without findings of axe-core (testdata) in both colour schemes. Names are hostile on
// purpose. TestCrowd opens the pages beside 100,000 keys; TestFailover has two servers with their journal in a Redis,
// behind a balancer. With -screenshots DIR the pages are also written as pictures.
//
// It must never reach beyond the loopback address. Start reading at rig_test.go.
package browsertest
