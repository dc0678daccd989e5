// Command build bundles the dashboard: from web/app and web/vendor into web/dist.
//
//	go -C web/build run .          writes web/dist
//	go -C web/build run . -check   writes nothing, and fails if web/dist is not what the sources make
//
// It needs no Node and no network: esbuild is a library, and the packages are in web/vendor. It must never change
// anything but web/dist, and the same sources always make the same bytes. It is a module of its own, so that esbuild is
// no dependency of the server. Start reading at bundle.
package main
