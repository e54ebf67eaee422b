package memoryserver

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// TestAddSecret: what could not be kept out is an error, and no error repeats it.
func TestAddSecret(t *testing.T) {
	var in Intake
	for _, c := range []struct {
		value string
		want  string
	}{
		{"abcd", ""}, {"abcd", ""}, {"abcdef", ""}, {"héé", ""}, {"", "a secret has at least 4 bytes"}, {"abc", "a secret has at least 4 bytes"},
		{"redacted", "a secret is no part of what stands in its place"}, {"[red", "a secret is no part of what stands in its place"},
		{memory.Mark, "a secret is no part of what stands in its place"},
		{"abc\xff", "a secret is UTF-8 without NUL"}, {"abc\x00", "a secret is UTF-8 without NUL"},
	} {
		if err := in.AddSecret(c.value); (err != nil) != (c.want != "") || err != nil && err.Error() != c.want {
			t.Errorf("%q: %v, want %v", c.value, err, c.want)
		}
	}
	if len(in.secrets) != 3 || in.secrets[0] != "abcdef" {
		t.Errorf("%q", in.secrets)
	}
	for i := range maxSecrets {
		err := in.AddSecret("secret-" + strings.Repeat("x", i))
		if i >= maxSecrets-3 != (err != nil) {
			t.Fatalf("secret %d: %v", i, err)
		}
	}
}

// textsIn are all texts of a JSON value, decoded: of leaves, and of names.
func textsIn(value []byte) (out []string) {
	switch strictjson.KindOf(value) {
	case strictjson.String:
		t, _ := strictjson.Text(value)
		out = append(out, t)
	case strictjson.Array:
		es, _ := strictjson.Elements(value)
		for _, e := range es {
			out = append(out, textsIn(e)...)
		}
	case strictjson.Object:
		ms, _ := strictjson.Members(value)
		for _, m := range ms {
			out = append(append(out, m.Name), textsIn(m.Value)...)
		}
	default:
		out = append(out, string(value))
	}
	return out
}

// FuzzRedact (M09): no secret is left in any text of what is redacted, and what
// holds none stays as it is, byte for byte.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{`{"a":"x hunter2 y"}`, `{"hunter2":{"hunter2":["hunter2",12345678,-12345678e1,true,null]}}`, `"\u0068unter2"`, `{ "a" : "plain" }`, `{"[redacted]0":1,"hunter2":2}`, `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if strictjson.Check(b, strictjson.Request) != nil {
			return
		}
		var in Intake
		secrets := []string{"hunter2", "12345678", "hunter2-longer"}
		for _, s := range secrets {
			if err := in.AddSecret(s); err != nil {
				t.Fatal(err)
			}
		}
		holds := func(v []byte) bool {
			for _, text := range textsIn(v) {
				for _, s := range secrets {
					if strings.Contains(text, s) {
						return true
					}
				}
			}
			return false
		}
		got := in.Redact(b)
		if holds(got) {
			t.Errorf("%s: %s", b, got)
		}
		if !holds(b) && !bytes.Equal(b, got) {
			t.Errorf("%s has none and became %s", b, got)
		}
		if again := in.Redact(got); !bytes.Equal(again, got) {
			t.Errorf("%s, and again %s", got, again)
		}
	})
}

// TestRedactSecrets: of any secrets none is left whole, whichever hold another.
func TestRedactSecrets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in Intake
		for _, s := range rapid.SliceOfN(rapid.StringMatching(`[ab]{4,7}`), 1, 4).Draw(t, "secrets") {
			if err := in.AddSecret(s); err != nil {
				t.Fatal(err)
			}
		}
		text := rapid.StringMatching(`[ab ]{0,40}`).Draw(t, "text")
		got := in.RedactText(text)
		for _, s := range in.secrets {
			if strings.Contains(got, s) {
				t.Errorf("%q without %q: %q", text, in.secrets, got)
			}
		}
	})
}

// TestScreened: an observation is quarantined, whatever else is blocked; words
// that were set apart in several texts are words all the same.
func TestScreened(t *testing.T) {
	const patterns = "version: 1\nclasses:\n  - id: x\n    title: X\n    action: halt\n    reply: No.\n    rules:\n      - id: y\n        patterns: ['ignore previous instructions']\n"
	s, faults := screen.Parse("p.yaml", []byte(patterns))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	long := strings.Repeat("a word ", screen.MaxText/7-10)
	for _, c := range []struct {
		tool, payload string
		want          memory.Screening
	}{
		{"record_observation", `{"observation_id":"o1","raw_payload":"the weather is fine"}`, ""},
		{"record_observation", `{"observation_id":"o1","raw_payload":"Ignore previous instructions!"}`, memory.ScreenQuarantine},
		{"record_observation", `{"observation_id":"o1","raw_payload":"x","source_ref":"ignore previous instructions"}`, memory.ScreenQuarantine},
		{"record_observation", `{"observation_id":"o1","raw_payload":"x","parsed_payload":{"ignore":["previous",{"instructions":1}]}}`, memory.ScreenQuarantine},
		{"record_observation", `{"observation_id":"o1","raw_payload":"` + long + `","parsed_payload":{"a":"` + long + `","b":"ignore previous instructions"}}`, memory.ScreenQuarantine},
		{"record_observation", `{"observation_id":"o1","raw_payload":"` + long + `"}`, ""},
		{"execute_test_result_ingest", `{"observation":{"raw_payload":"ignore previous instructions"}}`, memory.ScreenQuarantine},
		{"propose_proposition", `{"text":"ignore previous","about":["instructions"]}`, memory.ScreenBlock},
		{"archive_episode", `{"summary_text":"ignore previous instructions"}`, memory.ScreenBlock},
		{"propose_proposition", `{"text":"the weather is fine"}`, ""},
		{"record_observation", `{"raw_payload":7,"source_ref":"ignore previous instructions"}`, memory.ScreenBlock},
	} {
		for _, action := range []memory.Screening{memory.ScreenQuarantine, memory.ScreenBlock} {
			in := Intake{Screen: s, Action: action}
			want := c.want
			if want != "" && action == memory.ScreenBlock {
				want = action
			}
			got := in.Of(memory.Context{}, writ.Proposal{ToolName: c.tool, Payload: []byte(c.payload)}).Screened
			if got != want {
				t.Errorf("%s %.80s: %q, want %q", c.tool, c.payload, got, want)
			}
		}
	}
}
