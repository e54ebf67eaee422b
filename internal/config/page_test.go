package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/strictyaml"
)

// TestPage: docs/configuration.md has a row for each key that writ.yaml may have, and for
// no other.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|[^|]*\\|[^|]*[a-z][^|]*\\|$").FindAllStringSubmatch(string(page), -1) {
		told = append(told, m[1])
	}
	keys := keysOf(reflect.TypeFor[Config](), "")
	for _, k := range keys {
		inside := slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, k+".") })
		if n := count(told, k); n > 1 || n == 0 && !inside {
			t.Errorf("%q has %d rows", k, n)
		}
	}
	for _, k := range told {
		if !slices.Contains(keys, k) {
			t.Errorf("there is no key %q", k)
		}
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// keysOf are the keys that stand for a type, those within it with a dot.
func keysOf(of reflect.Type, before string) (keys []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name := f.Tag.Get("yaml")
		if name == "" {
			continue
		}
		keys = append(keys, before+name)
		in, list := f.Type, ""
		if in.Kind() == reflect.Slice {
			in, list = in.Elem(), "[]"
		}
		if place := reflect.TypeFor[strictyaml.Place](); in.Kind() == reflect.Struct && in.NumField() > 0 && in.Field(0).Type == place {
			keys = append(keys, keysOf(in, before+name+list+".")...)
		}
	}
	return keys
}
