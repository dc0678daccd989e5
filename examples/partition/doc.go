// Command partition crawls a site of six parts with the crawlers that are there: first one
// crawler, then two, then the second alone. Each part is crawled by one of them at a time. A
// crawler that must hand a part over stops its work on it first, and its late writes are
// refused by the part's fence.
//
// It needs a server:
//
//	interlock serve --data-dir /tmp/interlock --grpc 127.0.0.1:7421
//	go run ./examples/partition -grpc 127.0.0.1:7421
//
// Start reading at main.go.
package main
