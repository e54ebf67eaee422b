package main

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/policy"
)

// TestServerText: whatever a client's file names, each server gets a name of its own
// that a policy can have, and writ.yaml says of it what was meant or is refused before
// it is written.
func TestServerText(t *testing.T) {
	dir := t.TempDir()
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		w := &wiring{place: &place{dir: dir}}
		w.begin()
		names := rapid.SliceOfNDistinct(rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z _-]{0,40}`), rapid.SampledFrom([]string{policy.OwnServer, "claude-code", "host"})), 1, 6, rapid.ID).Draw(t, "names")
		seen := map[string]bool{}
		text := "policy: policy.yaml\nservers:\n"
		plain := true
		for _, n := range names {
			s := &clients.Server{Name: n, Command: rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "command"), Env: map[string]string{"A_B": "secret"}}
			s.Command[0] = "x" + s.Command[0]
			if rapid.Bool().Draw(t, "hosted") {
				*s = clients.Server{Name: n, URL: "https://x.example/?" + rapid.StringMatching(`[ -~]{0,9}`).Draw(t, "query"), Headers: []clients.Header{{Name: "X", Value: "secret", Env: "WRIT_HEADER_1"}}}
				plain = plain && !strings.ContainsAny(s.URL, "#%^")
			}
			name, why := w.add(s)
			if why != "" || seen[name] || !policy.ServerName(name) || name == policy.OwnServer || hook.Named(name) != nil {
				t.Fatalf("%q is called %q: %s", n, name, why)
			}
			seen[name] = true
			text += serverText(name, s)
		}
		if strings.Contains(text, "secret") {
			t.Fatalf("a value is in it:\n%s", text)
		}
		err := readsAs(dir, []byte(text), w.servers)
		if err != nil && plain {
			t.Fatalf("%v\n%s", err, text)
		}
		if err == nil {
			read++
		}
		for name, s := range w.servers {
			if s.URL != "" {
				continue
			}
			was := s.Command
			s.Command = append(slices.Clone(was), "more")
			if readsAs(dir, []byte(text), w.servers) == nil {
				t.Fatalf("%s may have another command", name)
			}
			s.Command = was
		}
	})
	if read == 0 {
		t.Error("none of them could be read")
	}
}
