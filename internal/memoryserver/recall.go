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
	w.value(reflect.ValueOf(answer), []string{"structuredContent"})
	return w.out
}

type recallWalk struct{ out []provenance.Recalled }

var (
	recalledType = reflect.TypeFor[memory.Recalled]()
	observedType = reflect.TypeFor[memory.Observed]()
	itemType     = reflect.TypeFor[memory.Item]()
)

func (w *recallWalk) value(v reflect.Value, path []string) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			w.value(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.value(v.Index(i), append(path[:len(path):len(path)], strconv.Itoa(i)))
		}
	case reflect.Struct:
		switch v.Type() {
		case recalledType:
			w.found(v.Interface().(memory.Recalled), path)
			return
		case itemType:
			it := v.Interface().(memory.Item)
			if it.Quote.Value == it.Text { // not cut
				w.at(it.Quote, append(path[:len(path):len(path)], "text"))
			}
			if it.Answers.Value == it.Value {
				w.at(it.Answers, append(path[:len(path):len(path)], "value"))
			}
			return
		case observedType:
			o := v.Interface().(memory.Observed)
			if o.Status == memory.Ingested && !o.Text.Cut && o.Whole {
				w.add(append(path[:len(path):len(path)], "text", "text"),
					provenance.Recalled{Label: o.Text.Label, Type: provenance.Type(o.Type), Collection: o.Collection, From: o.Evidence})
			}
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-":
			case name == "" && f.Anonymous:
				w.value(v.Field(i), path)
			default:
				w.value(v.Field(i), append(path[:len(path):len(path)], name))
			}
		}
	}
}

// found adds a value at the best of what it stands in.
func (w *recallWalk) found(r memory.Recalled, path []string) {
	w.at(r, append(path[:len(path):len(path)], "value"))
}

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
