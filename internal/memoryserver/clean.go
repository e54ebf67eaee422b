package memoryserver

import (
	"reflect"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// clean reports whether an answer shows nothing but what passes the one gate of
// the memory: else the session that reads it has seen what somebody else may have
// written, and what its agent notes from then on is no note of its own.
func clean(answer any, r *memory.Reader) bool {
	all := true
	walk(reflect.ValueOf(answer), nil, func(x any, _ []string) bool {
		ok, known := cleanObject(x, r)
		all = all && (ok || !known)
		return known || !all
	})
	return all
}

// cleanObject is clean of what holds texts, by the object that they are of.
func cleanObject(x any, r *memory.Reader) (ok, known bool) {
	switch x := x.(type) {
	case memory.Item:
		return r.Clean(x.Observation), true
	case memory.View:
		return r.Clean(x.ID) && (x.Quote == nil || cleanData(*x.Quote)), true
	case memory.Value:
		return r.Clean(x.Proposition), true
	case memory.Statement:
		return x.Quote == nil || r.Clean(x.Observation), true
	case memory.Moment:
		return x.Text == nil || r.Clean(x.ID), true
	case memory.Observed:
		return r.Clean(x.ID), true
	case memory.EntityView:
		return r.Clean(x.ID), true
	case memory.Test:
		return r.Clean(x.ID), true
	case memory.Record:
		if x.Episode != nil {
			return r.Clean(x.Episode.ID), true
		}
	case memory.Data:
		return cleanData(x), true
	case memory.Recalled: // of no object that is known
		return x.Value == "" || x.Label >= writ.System, true
	}
	return false, false
}

// cleanData is a text that is its own witness: it passes, and is no other user's.
func cleanData(d memory.Data) bool {
	return d.Text == "" || d.Trust >= 2 && d.Label != writ.External
}
