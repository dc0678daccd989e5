// Package redistest tries the door for clients of Redis with programs of others: the test suites of
// redis-py, redislock, redsync, redlock, redlock-py and pottery, unmodified. It compares the door's
// answers with those of a real Redis, and runs the snippets of articles about locks for agents.
//
//	suite_test.go              the suites, and how many of their tests have to pass
//	server_test.go             redis-server: a program of that name for suites that start one
//	redis_test.go              one conversation with Redis and with the door
//	snippet_test.go            the snippets
//	testdata/requirements.txt  the Python packages with their hashes, made from requirements.in
//	testdata/suites.txt        the source distributions with their suites
//	testdata/package-lock.json the packages of npm
//
// scripts/redis-tools.sh installs the packages below dist; those of Go come with bench/peers.
//
// Package redistest must never change a suite, or count a test as passed that its suite did not report
// so.
//
// Start reading at suite_test.go.
package redistest
