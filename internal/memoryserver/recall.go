package memoryserver

import (
	"reflect"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
	"github.com/writ-project/writ/provenance"
)

// recalled lists the leaves of an answer that stand verbatim in a captured
// observation, by the types of the answer and not by what it says (R35): values
// and names that memory found in their support, and the text of an observation
// as a whole. Everything else is somebody's wording.
func recalled(answer any) []provenance.Recalled {
	w := recallWalk{}
	walk(reflect.ValueOf(answer), []string{"structuredContent"}, w.object)
	return w.out
}

// walk calls object for each struct of an answer with where it stands, and for what
// is in it if object does not know it.
func walk(v reflect.Value, path []string, object func(x any, path []string) (known bool)) {
	below := func(v reflect.Value, name string) { walk(v, append(path[:len(path):len(path)], name), object) }
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), path, object)
		}
	case reflect.Slice:
		for i := range v.Len() {
			below(v.Index(i), strconv.Itoa(i))
		}
	case reflect.Struct:
		if object(v.Interface(), path) {
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
			case name == "-":
			case name == "" && f.Anonymous:
				walk(v.Field(i), path, object)
			default:
				below(v.Field(i), name)
			}
		}
	}
}

type recallWalk struct{ out []provenance.Recalled }

func (w *recallWalk) object(x any, path []string) (known bool) {
	in := func(names ...string) []string { return append(path[:len(path):len(path)], names...) }
	switch x := x.(type) {
	case memory.Recalled:
		w.at(x, in("value"))
	case memory.Item:
		if x.Quote.Value == x.Text { // not cut
			w.at(x.Quote, in("text"))
		}
		if x.Answers.Value == x.Value {
			w.at(x.Answers, in("value"))
		}
	case memory.Observed:
		if x.Status == memory.Ingested && !x.Text.Cut && x.Whole {
			w.add(in("text", "text"), provenance.Recalled{Label: x.Text.Label, Type: provenance.Type(x.Type), Collection: x.Collection, From: x.Evidence})
		}
	default:
		return false
	}
	return true
}

// at adds a value at the best of what it stands in.
func (w *recallWalk) at(r memory.Recalled, path []string) {
	if strings.Contains(r.Value, memory.Mark) {
		return // nobody said so: something was taken out of it
	}
	for _, o := range r.Origins {
		if o.Label == r.Label {
			w.add(path,
				provenance.Recalled{Label: r.Label, Type: provenance.Type(o.Type), Collection: o.Collection, From: o.Evidence})
			return
		}
	}
}

// add names a leaf, unless it is worth no more than any other.
func (w *recallWalk) add(path []string, r provenance.Recalled) {
	if r.Label > writ.Model && r.From != "" {
		r.Pointer = strictjson.Pointer(path)
		w.out = append(w.out, r)
	}
}

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
