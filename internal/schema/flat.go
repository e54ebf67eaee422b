package schema

import (
	"reflect"
	"slices"
	"strings"

	js "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/writ-project/writ/internal/strictjson"
)

// flat is a schema that says which members an object has and what types of scalars they are,
// and nothing else. Most are, and what one accepts is known by one look at each member. What
// is not accepted here is judged as if there were none.
type flat struct {
	members  map[string]string // the kinds of each, a byte each
	required []string
}

// maxFlat is how many members are looked at here, of which none costs more than a step or two.
const maxFlat = 1000

// flatOf returns the schema as a flat one, nil if it says anything else.
func flatOf(s *js.Schema) *flat {
	if !saysOnly(s, "Types", "Properties", "Required", "AdditionalProperties") || asSchema(s.AdditionalProperties) != nil ||
		s.Types != nil && !slices.Contains(s.Types.ToStrings(), "object") {
		return nil
	}
	f := &flat{map[string]string{}, s.Required}
	for name, p := range s.Properties {
		if !saysOnly(p, "Types") || p.Types == nil {
			return nil
		}
		kinds := ""
		for _, t := range p.Types.ToStrings() {
			switch t { // an integer is looked at the long way: 1.0 is one
			case "string":
				kinds += string(strictjson.String)
			case "number":
				kinds += string(strictjson.Number)
			case "boolean":
				kinds += string(strictjson.Bool)
			case "null":
				kinds += string(strictjson.Null)
			}
		}
		f.members[name] = kinds
	}
	return f
}

// saysOnly reports whether a schema has no keyword that judges but those.
func saysOnly(s *js.Schema, keywords ...string) bool {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		switch f := v.Type().Field(i); f.Name {
		case "DraftVersion", "Location", "ID", "Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated":
		default:
			if f.IsExported() && !v.Field(i).IsZero() && !slices.Contains(keywords, f.Name) {
				return false
			}
		}
	}
	return true
}

// accepts reports a value that the schema accepts, every member of which it names. It is false
// for any other, accepted or not.
func (f *flat) accepts(v strictjson.Value) bool {
	if f == nil || v.Kind() != strictjson.Object || v.Len() > maxFlat {
		return false
	}
	for name, m := range v.Members() {
		if kinds, ok := f.members[name]; !ok || strings.IndexByte(kinds, byte(m.Kind())) < 0 {
			return false
		}
	}
	return !slices.ContainsFunc(f.required, func(name string) bool { return !v.Get(name).Exists() })
}
