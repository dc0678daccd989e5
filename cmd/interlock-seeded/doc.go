// Command interlock-seeded puts known mistakes into the product, one at a time, and prints
// which of them the checks find, and after how long.
//
//	interlock-seeded                    try all mistakes out, and the finders without any
//	interlock-seeded -run '^matrix'     only those with a matching name
//	interlock-seeded -o json            for machines
//
// It ends with status 1 if fewer than 95 of 100 are found within a minute each, if one
// does not apply or compile any more, or if a finder fails without a mistake. A finder that
// was ended by its own time limit has found nothing.
//
// It must never change the tree. Start reading at main.go; the mistakes and how they are
// tried out are in package seeded.
package main
