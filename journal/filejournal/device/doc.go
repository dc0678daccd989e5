// Package device is what a file journal asks of the machine that it runs on: one
// directory and the files in it. Behind it is the operating system, or a simulated
// disk that forgets what was not synced.
//
// Start reading at [Directory]. It must never hold anything but these interfaces.
package device
