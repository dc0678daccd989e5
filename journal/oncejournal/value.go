package oncejournal

import (
	"bytes"
	"context"
	"crypto/rand"
	"strings"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// wordBytes is how long the word is that the data of a value begins with.
const wordBytes = 26

// fresh returns the stored form of a value's data, which no other write has.
func fresh(data []byte) []byte { return append([]byte(rand.Text()[:wordBytes]), data...) }

// plain returns the data of a stored value.
func (d *driver) plain(o *object) ([]byte, error) {
	if len(o.data) < wordBytes {
		return nil, &journal.DamageError{File: d.Place(o.name), Reason: "it is too short"}
	}
	return o.data[wordBytes:], nil
}

// valueName returns the name of the object with a value. No object's name lies below that of another one, as files
// do not below files.
func valueName(name string) string { return "value/" + strings.ReplaceAll(name, "/", "~") }

// founded is the version of the value that a journal was founded with, until it is replaced.
const founded = "founded"

// Get implements remote.Driver.
func (d *driver) Get(ctx context.Context, name string) (v remote.Value, err error) {
	list, err := d.objects.read(ctx, []string{valueName(name), recordName(1)}, true)
	if err != nil {
		return v, err
	}
	if o := &list[0]; o.exists() {
		v.Version = o.version
		v.Data, err = d.plain(o)
		return v, err
	}
	if o := &list[1]; o.exists() {
		if r, err := d.parse(1, o); err != nil || r.kind != kindFounded {
			return v, err
		}
		if data, ok := bytes.CutPrefix(o.data, []byte(name+"\n")); ok {
			return remote.Value{Data: data, Version: founded}, nil
		}
	}
	return v, nil
}

// Put implements remote.Driver.
func (d *driver) Put(
	ctx context.Context, by remote.Head, name string, data []byte, was string,
) (version string, done bool, err error) {
	if was == founded {
		was = ""
	}
	return d.putOwned(ctx, by.Owner, object{name: valueName(name), data: fresh(data)}, was)
}

// putOwned stores an object if by is the owner, and the object's version is was.
func (d *driver) putOwned(
	ctx context.Context, by remote.Owner, o object, was string,
) (version string, done bool, err error) {
	at, err := d.start(ctx)
	for err == nil {
		if at.head.Owner == by {
			version, done, err = d.objects.put(ctx, o, was, recordName(at.number+1))
			if err != nil || done {
				return version, done, err
			}
		}
		before := at.number
		if at, err = d.follow(ctx, at); at.number == before {
			break
		}
		// An append came in between, or another owner.
	}
	return "", false, err
}

// Swap implements remote.Driver.
func (d *driver) Swap(
	ctx context.Context, name string, data []byte, was string,
) (version string, done bool, err error) {
	return d.objects.put(ctx, object{name: valueName(name), data: fresh(data)}, was, "")
}

// Remove implements remote.Driver.
func (d *driver) Remove(ctx context.Context, by remote.Head, from, to string) (bool, error) {
	common := 0
	for common < min(len(from), len(to)) && from[common] == to[common] {
		common++
	}
	names, err := d.objects.list(ctx, valueName(from[:common]))
	if err != nil {
		return false, err
	}
	var list []object
	for _, name := range names {
		value := strings.ReplaceAll(strings.TrimPrefix(name, "value/"), "~", "/")
		if from <= value && value < to {
			list = append(list, object{name: name})
		}
	}
	if done, err := d.Confirm(ctx, by); err != nil || !done {
		return false, err
	}
	err = d.objects.remove(ctx, list)
	return err == nil, err
}
