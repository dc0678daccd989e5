package workspace

import (
	"strings"
)

// Kind is how a tree comes to have its files.
type Kind string

const (
	// Auto lets Create choose, in this order: overlay as root, reflink, worktree. It never chooses a
	// kind that other programs on the host cannot see the files of.
	Auto Kind = "auto"
	// Overlay mounts the tree over a base checkout: nothing is copied until it is written. As root the
	// mount is the host's. As an ordinary user it is in a user namespace, which exists while a command
	// runs: outside of commands started by Workspace.Enter the tree is an empty folder. There it cannot
	// rename a folder of the base (rename fails as between file systems, and so does git mv).
	Overlay Kind = "overlay"
	// Reflink copies a base checkout on a file system that shares blocks (Btrfs, XFS, APFS).
	Reflink Kind = "reflink"
	// Worktree checks all files out.
	Worktree Kind = "worktree"
	// Sparse checks out some folders, and the files beside and above them. It has to be asked for.
	Sparse Kind = "sparse"
)

// ParseKind reads the name of a kind.
func ParseKind(text string) (Kind, error) {
	switch k := Kind(text); k {
	case Auto, Overlay, Reflink, Worktree, Sparse:
		return k, nil
	}
	return "", problem(CodeKind, "there is no kind %q of workspace: use auto, overlay, reflink, worktree or sparse", text)
}

// usesBase reports whether trees of the kind are made of a base checkout.
func (k Kind) usesBase() bool { return k == Overlay || k == Reflink }

// choice is what chooseKind found.
type choice struct {
	kind     Kind
	rootless bool
	why      string
}

// chooseKind decides on the kind of a workspace below root. It tries what the machine can do, in a
// folder of its own below root.
func chooseKind(root string, wanted Kind, sparse []string, probe prober) (choice, error) {
	if wanted == Auto && len(sparse) > 0 {
		return choice{kind: Sparse, why: "folders were named"}, nil
	}
	switch wanted {
	case Sparse:
		if len(sparse) == 0 {
			return choice{}, problem(CodeKind, "kind sparse needs the folders to check out: name them")
		}
		return choice{kind: Sparse, why: "it was asked for"}, nil
	case Worktree:
		return choice{kind: Worktree, why: "it was asked for"}, nil
	case Reflink:
		if err := probe.reflink(root); err != nil {
			return choice{}, problem(
				CodeKind,
				"kind reflink does not work in %s (%v): use another kind, or a folder on Btrfs, XFS or APFS", root,
				err,
			)
		}
		return choice{kind: Reflink, why: "it was asked for"}, nil
	case Overlay:
		rootErr := probe.overlay(root)
		if rootErr == nil {
			return choice{kind: Overlay, why: "it was asked for"}, nil
		}
		err := probe.rootless(root)
		if err == nil {
			return choice{
				kind: Overlay, rootless: true,
				why: "it was asked for; its files are visible to `interlock workspace run` only",
			}, nil
		}
		return choice{}, problem(
			CodeKind, "kind overlay does not work in %s (%v; in a user namespace: %v): use another kind", root,
			rootErr, err,
		)
	}
	var refused []string
	err := probe.overlay(root)
	if err == nil {
		return choice{kind: Overlay, why: "this user may mount"}, nil
	}
	refused = append(refused, "no overlay: "+err.Error())
	if err = probe.reflink(root); err == nil {
		return choice{kind: Reflink, why: "the file system shares blocks; " + refused[0]}, nil
	}
	refused = append(refused, "no reflink: "+err.Error())
	return choice{kind: Worktree, why: strings.Join(refused, "; ")}, nil
}

// prober tries what a machine can do. Each method returns nil if it works, else why it does not, in a
// few words.
type prober interface {
	overlay(root string) error  // mount one for all
	rootless(root string) error // mount one in a user namespace
	reflink(root string) error  // copy a file by sharing its blocks
}
