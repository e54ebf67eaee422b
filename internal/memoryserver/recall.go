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
	w.walk(reflect.ValueOf(answer), []string{"structuredContent"})
	return w.out
}

type recallWalk struct{ out []provenance.Recalled }

// walk looks at each struct of an answer, with where it stands, and at what is in one
// that it does not know.
func (w *recallWalk) walk(v reflect.Value, path []string) {
	below := func(v reflect.Value, name string) { w.walk(v, append(path[:len(path):len(path)], name)) }
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			w.walk(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			below(v.Index(i), strconv.Itoa(i))
		}
	case reflect.Struct:
		if w.object(v.Interface(), path) {
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
				w.walk(v.Field(i), path)
			default:
				below(v.Field(i), name)
			}
		}
	}
}

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
