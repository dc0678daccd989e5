// Package lfs is the locking API of Git LFS on leases, so that a stock git-lfs client is
// refused when it pushes a file that another user holds.
//
//	git lfs lock logo.png ──► POST /locks        ──► an exclusive lease on repo:web/logo.png
//	git push              ──► POST /locks/verify ──► holders below repo:web/
//	git lfs unlock        ──► POST /locks/{id}/unlock ──► the lease is revoked
//
// It keeps nothing: a lock is a lease of no session, in the user's name, that lives for
// [Config].TTL. Its id is the lease's fence. A lease that an agent has from elsewhere, by a
// hook or a command, is a lock to git-lfs too.
//
// It must never report a file as free because it could not ask. A client decides by itself
// whether it listens: what binds is the hook of package git.
//
// The API is described in docs/api/locking.md of github.com/git-lfs/git-lfs. Start
// reading at handler.go.
package lfs
