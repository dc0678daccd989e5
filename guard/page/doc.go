// Package page keeps web pages away from guards that listen on loopback. It is one
// function, [Foreign], and must never be the only thing that a guard relies on.
package page
