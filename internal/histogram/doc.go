// Package histogram counts durations in little memory. Percentiles are at most a fifth too large, and never too small.
//
// It never shrinks and uses no clock. Start reading at histogram.go.
package histogram
